#include "model/files/forms/scaled_names.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "model/files/forms/convert.h"

namespace foretoken {
namespace {

constexpr std::string_view kPacked = ".weight_packed";
constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kBlocks = "_blocks";
constexpr std::string_view kColumnScales = ".pre_quant_scale";
constexpr std::string_view kScaleEndings[] = {"_scale_inv", "_scale", "_weight_scale"};
constexpr std::string_view kActivationScales[] = {
    "input_scale",       ".output_scale",      "input_global_scale", "output_global_scale",
    ".input_zero_point", ".output_zero_point", ".input_scale_ub",    "activation_scale"};
constexpr std::string_view kAttentionScales[] = {".q_scale",
                                                 ".k_scale",
                                                 ".v_scale",
                                                 ".kv_scale",
                                                 ".prob_scale",
                                                 ".q_proj.output_scale",
                                                 ".k_proj.output_scale",
                                                 ".v_proj.output_scale",
                                                 ".prob_output_scale",
                                                 ".k_zero_point",
                                                 ".v_zero_point",
                                                 ".q_zero_point",
                                                 ".k_proj.k_bias",
                                                 ".v_proj.v_bias"};

using Tensors = std::map<std::string, const TensorView*>;

bool ends_with_any(std::string_view name, std::span<const std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

bool is_scale(std::string_view name) {
  return name.ends_with("_scale") || name.ends_with("_scale_inv") || name.ends_with("_scale_2") ||
         name.ends_with("_scales");
}

// Of a tensor that may hold codes; none where its type is another.
std::optional<CodeType> code_type(const TensorView& tensor) {
  if (tensor.shape.size() < 2) return std::nullopt;
  if (tensor.dtype_name == "F8_E4M3") return CodeType::kE4m3;
  if (tensor.dtype_name == "F8_E5M2") return CodeType::kE5m2;
  if (tensor.dtype_name == "U8") return CodeType::kE2m1;
  if (tensor.dtype_name == "I8") return CodeType::kInt8;
  return std::nullopt;
}

// Adds the tensor `name` to the matrix, where there is one.
const TensorView* take_part(const Tensors& tensors, const std::string& name, NamedScaled* named) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) return nullptr;
  named->names.push_back(name);
  return found->second;
}

NamedScaled packed_matrix(const Tensors& tensors, const std::string& name) {
  const std::string base = name.substr(0, name.size() - kPacked.size());
  NamedScaled named;
  named.name = base + ".weight";
  named.parts.type = CodeType::kE2m1;
  named.parts.codes = take_part(tensors, name, &named);
  named.parts.scales = take_part(tensors, base + ".weight_scale", &named);
  named.parts.factor = take_part(tensors, base + ".weight_global_scale", &named);
  named.parts.divides = true;
  take_part(tensors, base + ".weight_shape", &named);
  return named;
}

NamedScaled matrix_of_blocks(const Tensors& tensors, const std::string& name) {
  NamedScaled named;
  named.name = name.substr(0, name.size() - kBlocks.size());
  named.parts.type = CodeType::kE2m1;
  named.parts.in_blocks = true;
  named.parts.codes = take_part(tensors, name, &named);
  named.parts.scales = take_part(tensors, named.name + "_scales", &named);
  return named;
}

// DeepSeek V4's X.scale; integers with powers of two are two codes of four bits each.
void take_plain_scale(const Tensors& tensors, NamedScaled* named) {
  if (!named->name.ends_with(kWeight)) return;
  const std::string base = named->name.substr(0, named->name.size() - kWeight.size());
  named->parts.scales = take_part(tensors, base + ".scale", named);
  if (named->parts.scales == nullptr || named->parts.type != CodeType::kInt8) return;
  if (named->parts.scales->dtype_name == "F8_E8M0") named->parts.type = CodeType::kE2m1;
}

// X.input_scale of X.weight, or of experts in one tensor X.
void take_input_scale(const Tensors& tensors, NamedScaled* named) {
  if (named->parts.type != CodeType::kE4m3) return;
  const std::string& name = named->name;
  const bool is_weight = name.ends_with(kWeight);
  const std::string base =
      is_weight ? name.substr(0, name.size() - kWeight.size()) + "." : name + "_";
  for (const char* ending : {"input_scale", "activation_scale"}) {
    if (named->input_scale != nullptr) return;
    named->input_scale = take_part(tensors, base + ending, named);
  }
}

NamedScaled plain_matrix(const Tensors& tensors, const std::string& name, CodeType type) {
  NamedScaled named;
  named.name = name;
  named.parts.type = type;
  named.parts.codes = take_part(tensors, name, &named);
  for (const std::string_view ending : kScaleEndings) {
    const std::string scales = name + std::string(ending);
    named.parts.scales = take_part(tensors, scales, &named);
    if (named.parts.scales == nullptr) continue;
    if (!ending.ends_with("_inv")) named.parts.factor = take_part(tensors, scales + "_2", &named);
    break;
  }
  if (named.parts.scales == nullptr) take_plain_scale(tensors, &named);
  named.parts.zeros = take_part(tensors, name + "_zero_point", &named);
  return named;
}

}  // namespace

Result<float> input_scale_of(const NamedScaled& named) {
  if (named.input_scale == nullptr || !check_convertible(*named.input_scale).ok()) return 0.0F;
  std::vector<float> values(static_cast<size_t>(named.input_scale->num_elements()));
  FT_RETURN_IF_ERROR(convert_tensor(*named.input_scale, DType::kF32, values.data()));
  float largest = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) return 0.0F;
    largest = std::max(largest, value);
  }
  return largest;
}

bool is_attention_scale(std::string_view name) { return ends_with_any(name, kAttentionScales); }

bool is_activation_scale(std::string_view name) {
  return ends_with_any(name, kActivationScales) && !is_attention_scale(name);
}

Result<std::vector<NamedScaled>> find_scaled(const Tensors& tensors) {
  std::vector<NamedScaled> found;
  for (const auto& [name, tensor] : tensors) {
    const std::optional<CodeType> type = code_type(*tensor);
    if (!type || is_scale(name) || is_attention_scale(name)) continue;
    const bool is_packed = name.ends_with(kPacked) && type == CodeType::kE2m1;
    const bool has_blocks = name.ends_with(kBlocks) && type == CodeType::kE2m1;
    NamedScaled named = is_packed    ? packed_matrix(tensors, name)
                        : has_blocks ? matrix_of_blocks(tensors, name)
                                     : plain_matrix(tensors, name, *type);
    if (named.name.ends_with(kWeight)) {
      const std::string base = named.name.substr(0, named.name.size() - kWeight.size());
      named.column_scales = take_part(tensors, base + std::string(kColumnScales), &named);
    }
    take_input_scale(tensors, &named);
    if (named.parts.scales == nullptr) {
      // Bytes and integers may be something else, which whoever loads the model judges.
      const bool is_float = type == CodeType::kE4m3 || type == CodeType::kE5m2;
      if (!is_packed && !has_blocks && !is_float) continue;
      return invalid_argument(tensor->file + ": the quantised matrix '" + name +
                              "' lacks its scales (weight_scale or weight_scale_inv); fetch the "
                              "checkpoint again");
    }
    found.push_back(std::move(named));
  }
  return found;
}

}  // namespace foretoken
