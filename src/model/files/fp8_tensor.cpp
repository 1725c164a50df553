#include "model/files/fp8_tensor.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/bfloat16.h"
#include "base/float8.h"
#include "model/files/convert.h"
#include "model/files/safetensors.h"

namespace foretoken {
namespace {

constexpr std::string_view kScaleEndings[] = {"_scale_inv", "_scale"};
constexpr std::string_view kActivationScales[] = {".input_scale", ".output_scale"};
constexpr std::string_view kAttentionScales[] = {".q_scale",
                                                 ".k_scale",
                                                 ".v_scale",
                                                 ".kv_scale",
                                                 ".prob_scale",
                                                 ".q_proj.output_scale",
                                                 ".k_proj.output_scale",
                                                 ".v_proj.output_scale"};

bool ends_with_any(const std::string& name, std::span<const std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

std::array<float, 256> make_values() {
  std::array<float, 256> values;
  for (size_t code = 0; code < values.size(); ++code) {
    values[code] = e4m3_value(static_cast<uint8_t>(code));
  }
  return values;
}

int64_t blocks_of(int64_t size, int64_t block) { return (size + block - 1) / block; }

}  // namespace

float fp8_value(uint8_t code) {
  static const std::array<float, 256> values = make_values();
  return values[code];
}

bool has_fp8_codes(const TensorView& tensor) {
  return tensor.dtype_name == "F8_E4M3" && tensor.shape.size() >= 2;
}

bool is_attention_scale(const std::string& name) { return ends_with_any(name, kAttentionScales); }

bool is_fp8_activation_scale(const std::string& name) {
  return ends_with_any(name, kActivationScales) && !is_attention_scale(name);
}

std::string find_fp8_scales(const std::map<std::string, const TensorView*>& tensors,
                            const std::string& name) {
  for (const std::string_view ending : kScaleEndings) {
    std::string scales = name + std::string(ending);
    if (tensors.contains(scales)) return scales;
  }
  return {};
}

Result<Fp8Tensor> Fp8Tensor::create(const Quantization& quantization, const TensorView& codes,
                                    const TensorView& scales) {
  FT_RETURN_IF_ERROR(check_convertible(scales));
  Fp8Tensor tensor(codes, scales);
  tensor.cols_ = codes.shape.back();
  const int64_t rows = tensor.cols_ > 0 ? codes.num_elements() / tensor.cols_ : 0;
  const int64_t of_matrix = codes.shape[codes.shape.size() - 2];
  const int64_t num_scales = scales.num_elements();
  tensor.block_cols_ = std::max<int64_t>(tensor.cols_, 1);
  if (num_scales == 1) {
    tensor.block_rows_ = std::max<int64_t>(rows, 1);
    return tensor;
  }
  const int64_t down = quantization.block_rows, across = quantization.block_cols;
  const bool is_stack = codes.shape.size() > 2;
  const bool fits = down > 0 && across > 0 && (!is_stack || of_matrix % down == 0) &&
                    num_scales == blocks_of(rows, down) * blocks_of(tensor.cols_, across) &&
                    scales.shape.back() == blocks_of(tensor.cols_, across);
  if (!fits && num_scales == rows) {
    tensor.block_rows_ = 1;
    return tensor;
  }
  if (!fits) {
    return invalid_argument(scales.file + ": tensor '" + scales.name + "' has shape " +
                            scales.shape_text() + ", which are no scales of '" + codes.name +
                            "' of shape " + codes.shape_text() +
                            " with the weight_block_size of quantization_config; the files must "
                            "be of one model");
  }
  tensor.block_rows_ = down;
  tensor.block_cols_ = across;
  tensor.scales_of_row_ = blocks_of(tensor.cols_, across);
  return tensor;
}

Status Fp8Tensor::read_elements(int64_t first, int64_t count, DType dtype, void* to,
                                std::vector<std::byte>& raw) const {
  raw.resize(static_cast<size_t>(count));
  FT_RETURN_IF_ERROR(codes_->read(first, count, raw.data()));
  std::vector<float> scales(static_cast<size_t>(scales_of_row_));
  std::vector<std::byte> scratch;
  int64_t have = -1;  // the row of blocks whose scales these are
  for (int64_t done = 0; done < count;) {
    const int64_t row = (first + done) / cols_, col = (first + done) % cols_;
    if (row / block_rows_ != have) {
      have = row / block_rows_;
      FT_RETURN_IF_ERROR(foretoken::read_elements(*scales_, have * scales_of_row_, scales_of_row_,
                                                  DType::kF32, scales.data(), scratch));
    }
    const int64_t end_of_block = std::min((col / block_cols_ + 1) * block_cols_, cols_);
    const int64_t here = std::min(end_of_block - col, count - done);
    const float scale = scales[static_cast<size_t>(col / block_cols_)];
    for (int64_t i = done; i < done + here; ++i) {
      const float value = fp8_value(static_cast<uint8_t>(raw[static_cast<size_t>(i)])) * scale;
      if (dtype == DType::kF32) {
        static_cast<float*>(to)[i] = value;
      } else {
        static_cast<uint16_t*>(to)[i] = bf16_from_float(value);
      }
    }
    done += here;
  }
  return {};
}

}  // namespace foretoken
