#include "convert/to_fp8.h"

#include <algorithm>
#include <vector>

#include "base/float8.h"
#include "convert/quantized_folder.h"
#include "convert/tensor_rows.h"
#include "model/files/forms/rounded_tensor.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr int64_t kFp8Block = 128;      // rows and columns
constexpr float kMaxFp8Weight = 1e30F;  // so that scales and their reciprocals are floats

// Which elements of a matrix [n, k] share a scale.
struct Fp8Blocks {
  int64_t rows, cols;     // of a block
  int64_t lines, across;  // blocks below one another, and side by side
};

Fp8Blocks blocks_in(Fp8Form form, int64_t n, int64_t k) {
  const auto cut = [&](int64_t rows, int64_t cols) {
    return Fp8Blocks{rows, cols, (n + rows - 1) / rows, (k + cols - 1) / cols};
  };
  if (form == Fp8Form::kBlocks) return cut(kFp8Block, kFp8Block);
  return cut(form == Fp8Form::kTensor ? n : 1, k);
}

// As vLLM reads it: weights by output, and x by row while it runs.
Json row_config() {
  const Json weights = {{"num_bits", 8},        {"type", "float"},  {"strategy", "channel"},
                        {"symmetric", true},    {"dynamic", false}, {"observer", "minmax"},
                        {"group_size", nullptr}};
  const Json inputs = {{"num_bits", 8},     {"type", "float"}, {"strategy", "token"},
                       {"symmetric", true}, {"dynamic", true}, {"group_size", nullptr}};
  return compressed_tensors_config("float-quantized", weights, inputs);
}

FolderForm folder_of(Fp8Form form) {
  if (form == Fp8Form::kModelOptRows) return modelopt_form("FP8_PER_CHANNEL_PER_TOKEN", 0);
  FolderForm folder;
  if (form == Fp8Form::kRows) {
    folder.quantization = row_config();
    return folder;
  }
  folder.quantization = {
      {"quant_method", "fp8"}, {"fmt", "e4m3"}, {"activation_scheme", "dynamic"}};
  if (form == Fp8Form::kBlocks) {
    folder.quantization["weight_block_size"] = {kFp8Block, kFp8Block};
  }
  folder.plain_modules = "modules_to_not_convert";
  folder.has_patterns = false;
  return folder;
}

std::vector<NewTensor> plan_fp8(Fp8Form form, const std::string& base, const ModelTensor& tensor) {
  const int64_t n = tensor.shape[0], k = tensor.shape[1];
  const Fp8Blocks blocks = blocks_in(form, n, k);
  std::vector<int64_t> shape;  // of scales
  if (form == Fp8Form::kModelOptRows) shape = {n};
  if (form == Fp8Form::kRows || form == Fp8Form::kBlocks) shape = {blocks.lines, blocks.across};
  const char* ending = form == Fp8Form::kBlocks ? ".weight_scale_inv" : ".weight_scale";
  return {{base + ".weight", "F8_E4M3", {n, k}, n * k},
          {base + ending, "F32", shape, blocks.lines * blocks.across * 4}};
}

// The scales of a matrix' blocks, [lines, across].
Result<std::vector<float>> find_scales(const TensorRows& rows, const Fp8Blocks& blocks) {
  const int64_t n = rows.rows(), k = rows.cols();
  std::vector<float> largest(static_cast<size_t>(n * blocks.across));
  FT_RETURN_IF_ERROR(for_rows(rows, kMaxFp8Weight, [&](int64_t row, const float* values) {
    for (int64_t a = 0; a < blocks.across; ++a) {
      const int64_t col = a * blocks.cols;
      largest[static_cast<size_t>(row * blocks.across + a)] =
          largest_magnitude(values + col, std::min(blocks.cols, k - col));
    }
  }));
  std::vector<float> scales(static_cast<size_t>(blocks.lines * blocks.across));
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t a = 0; a < blocks.across; ++a) {
      float& scale = scales[static_cast<size_t>(row / blocks.rows * blocks.across + a)];
      scale = std::max(scale, largest[static_cast<size_t>(row * blocks.across + a)]);
    }
  }
  std::transform(scales.begin(), scales.end(), scales.begin(), fp8_scale);
  return scales;
}

Status write_fp8(Fp8Form form, const TensorView& view, const FolderForm::Append& append) {
  const TensorRows rows(view);
  const int64_t n = rows.rows(), k = rows.cols();
  const Fp8Blocks blocks = blocks_in(form, n, k);
  FT_ASSIGN_OR_RETURN(const std::vector<float> scales, find_scales(rows, blocks));
  std::vector<uint8_t> codes(static_cast<size_t>(n * k));
  FT_RETURN_IF_ERROR(for_rows(rows, kMaxFp8Weight, [&](int64_t row, const float* values) {
    const float* scale = scales.data() + row / blocks.rows * blocks.across;
    uint8_t* to = codes.data() + row * k;
    for (int64_t a = 0; a < blocks.across; ++a) {
      const float factor = 1 / scale[a];
      const int64_t end = std::min((a + 1) * blocks.cols, k);
      for (int64_t col = a * blocks.cols; col < end; ++col) {
        to[col] = e4m3_code(values[col] * factor);
      }
    }
  }));
  FT_RETURN_IF_ERROR(append(codes.data(), std::ssize(codes)));
  return append(scales.data(), std::ssize(scales) * 4);
}

}  // namespace

Result<int64_t> to_fp8(const ModelFiles& model, Fp8Form form, const ConvertOptions& options) {
  FolderForm folder = folder_of(form);
  folder.plan = [form](const std::string& base, const ModelTensor& tensor, const TensorView&) {
    return Result<std::vector<NewTensor>>(plan_fp8(form, base, tensor));
  };
  folder.write = [form](const ModelTensor&, const TensorView& view,
                        const FolderForm::Append& append) { return write_fp8(form, view, append); };
  return write_quantized_folder(model, folder, options);
}

}  // namespace foretoken
