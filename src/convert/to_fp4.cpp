#include "convert/to_fp4.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>

#include "base/float8.h"
#include "base/microscaling.h"
#include "convert/quantized_folder.h"
#include "convert/tensor_rows.h"
#include "model/files/forms/rounded_tensor.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr float kMaxWeight = 1e30F;  // so that scales and their reciprocals are floats

// A layer's matrices have one factor, so that tools which join some of them find it equal.
struct LayerFactor {
  std::vector<const TensorView*> matrices;
  float factor = 0;  // 0: not found yet
};

// Packs a group whose scale is `scale`; 0: all are zeros.
void pack_group(const float* values, int64_t count, float scale, uint8_t* to) {
  for (int64_t i = 0; i < count; i += 2) {
    const auto code = [&](int64_t at) { return scale > 0 ? e2m1_code(values[at] / scale) : 0; };
    *to++ = static_cast<uint8_t>(code(i) | code(i + 1) << 4);
  }
}

// The exponent's code of a group of MXFP4.
uint8_t exponent_code(float largest) {
  if (!(largest > 0)) return 127;
  return static_cast<uint8_t>(std::clamp(std::ilogb(largest) - 2 + 127, 0, 254));
}

class Fp4Conversion {
 public:
  explicit Fp4Conversion(Fp4Form form)
      : is_nvfp4_(form != Fp4Form::kMxfp4), is_modelopt_(form == Fp4Form::kModelOptNvfp4) {}

  FolderForm folder() const {
    if (is_modelopt_) return modelopt_form("W4A16_NVFP4", group());
    Json weights = {{"num_bits", 4},     {"type", "float"},  {"group_size", group()},
                    {"symmetric", true}, {"dynamic", false}, {"observer", "minmax"}};
    weights["strategy"] = is_nvfp4_ ? "tensor_group" : "group";
    if (!is_nvfp4_) weights["scale_dtype"] = "torch.uint8";
    FolderForm form;
    form.quantization = compressed_tensors_config(
        is_nvfp4_ ? "nvfp4-pack-quantized" : "mxfp4-pack-quantized", weights, nullptr);
    return form;
  }

  Result<std::vector<NewTensor>> plan(const std::string& base, const ModelTensor& tensor,
                                      const TensorView& view) {
    const int64_t n = tensor.shape[0], k = tensor.shape[1];
    if (k % group() != 0) {
      return unsupported(view.file + ": tensor '" + view.name + "' has shape " + view.shape_text() +
                         ", but columns must be whole groups of " + std::to_string(group()) +
                         "; use --type fp8");
    }
    layers_[tensor.layer].matrices.push_back(&view);
    const int64_t groups = k / group();
    std::vector<NewTensor> made = {
        {base + (is_modelopt_ ? ".weight" : ".weight_packed"), "U8", {n, k / 2}, n * k / 2},
        {base + ".weight_scale", is_nvfp4_ ? "F8_E4M3" : "U8", {n, groups}, n * groups}};
    if (is_modelopt_) {
      made.push_back({base + ".weight_scale_2", "F32", {}, 4});
    } else if (is_nvfp4_) {
      made.push_back({base + ".weight_global_scale", "F32", {1}, 4});
    }
    return made;
  }

  Status write(const ModelTensor& tensor, const TensorView& view,
               const FolderForm::Append& append) {
    const int64_t n = tensor.shape[0], k = tensor.shape[1], groups = k / group();
    float factor = 1;
    if (is_nvfp4_) {
      FT_ASSIGN_OR_RETURN(factor, factor_of(layers_[tensor.layer]));
    }
    const float second = 1 / factor;  // ModelOpt's, which multiplies
    const TensorRows rows(view);
    std::vector<uint8_t> codes(static_cast<size_t>(n * k / 2)),
        scales(static_cast<size_t>(n * groups));
    FT_RETURN_IF_ERROR(for_rows(rows, kMaxWeight, [&](int64_t row, const float* values) {
      for (int64_t g = 0; g < groups; ++g) {
        const float* at = values + g * group();
        uint8_t& scale = scales[static_cast<size_t>(row * groups + g)];
        scale = scale_code(largest_magnitude(at, group()), factor);
        const float value = is_modelopt_ ? e4m3_value(scale) * second
                            : is_nvfp4_  ? e4m3_value(scale) / factor
                                         : e8m0_value(scale);
        pack_group(at, group(), value, codes.data() + (row * k + g * group()) / 2);
      }
    }));
    FT_RETURN_IF_ERROR(append(codes.data(), std::ssize(codes)));
    FT_RETURN_IF_ERROR(append(scales.data(), std::ssize(scales)));
    const float* last = is_modelopt_ ? &second : &factor;
    return is_nvfp4_ ? append(last, sizeof *last) : Status();
  }

 private:
  int64_t group() const { return is_nvfp4_ ? 16 : 32; }
  uint8_t scale_code(float largest, float factor) const {
    return is_nvfp4_ ? e4m3_code(largest / kMaxE2m1 * factor) : exponent_code(largest);
  }

  // By which scales are divided: the layer's largest number gets the largest code and scale.
  static Result<float> factor_of(LayerFactor& layer) {
    if (layer.factor > 0) return layer.factor;
    float largest = 0;
    std::mutex mutex;
    for (const TensorView* view : layer.matrices) {
      const TensorRows rows(*view);
      FT_RETURN_IF_ERROR(for_rows(rows, kMaxWeight, [&](int64_t, const float* values) {
        const float most = largest_magnitude(values, rows.cols());
        std::lock_guard lock(mutex);
        largest = std::max(largest, most);
      }));
    }
    layer.factor = largest > 1e-30F ? kMaxE4m3 * kMaxE2m1 / largest : 1;
    return layer.factor;
  }

  const bool is_nvfp4_;
  const bool is_modelopt_;
  std::map<int32_t, LayerFactor> layers_;
};

}  // namespace

Result<int64_t> to_fp4(const ModelFiles& model, Fp4Form form, const ConvertOptions& options) {
  Fp4Conversion conversion(form);
  FolderForm folder = conversion.folder();
  folder.plan = [&](const std::string& base, const ModelTensor& tensor, const TensorView& view) {
    return conversion.plan(base, tensor, view);
  };
  folder.write = [&](const ModelTensor& tensor, const TensorView& view,
                     const FolderForm::Append& append) {
    return conversion.write(tensor, view, append);
  };
  return write_quantized_folder(model, folder, options);
}

}  // namespace foretoken
