#include "model/files/forms/torchao_names.h"

#include <string_view>
#include <utility>

namespace foretoken {
namespace {

constexpr std::pair<std::string_view, std::string_view> kTorchAoParts[] = {
    {"._weight_qdata", ".weight"},
    {"._weight_scale", ".weight_scale"},
    {"._weight_zero_point", ".weight_zero_point"},
    {"._weight_act_pre_scale", ".pre_quant_scale"}};

}  // namespace

std::string name_without_torchao(const std::string& name) {
  for (const auto& [of_torchao, usual] : kTorchAoParts) {
    if (!name.ends_with(of_torchao)) continue;
    return name.substr(0, name.size() - of_torchao.size()) + std::string(usual);
  }
  return name;
}

Status check_torchao(const std::map<std::string, const TensorView*>& tensors) {
  constexpr std::string_view kCodes = "._weight_qdata";
  for (const auto& [name, tensor] : tensors) {
    if (!name.ends_with(kCodes)) continue;
    const std::string base = name.substr(0, name.size() - kCodes.size());
    const auto scales = tensors.find(base + "._weight_scale");
    const bool has_float_scales = scales != tensors.end() &&
                                  scales->second->dtype != FileDType::kOther &&
                                  !tensors.contains(base + "._weight_per_tensor_scale");
    const bool is_read =
        has_float_scales && (tensor->dtype_name == "I8" || tensor->dtype_name == "U8" ||
                             tensor->dtype_name == "F8_E4M3" || tensor->dtype_name == "F8_E5M2");
    if (is_read) continue;
    return unsupported(tensor->file + ": torchao's matrix '" + name + "' is " + tensor->dtype_name +
                       " " + tensor->shape_text() +
                       ", laid out for one kernel, which is not read; quantise the model with "
                       "Int8Tensor, Float8Tensor, IntxUnpackedToInt8Tensor or plain Int4Tensor, "
                       "or use the model as it was before");
  }
  return {};
}

}  // namespace foretoken
