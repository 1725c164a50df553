#pragma once
#include <map>
#include <string>

#include "base/result.h"
#include "model/files/containers/safetensors.h"

namespace foretoken {

// The name of a part of torchao's matrix, X._weight_qdata, X._weight_scale, X._weight_zero_point or
// X._weight_act_pre_scale, as other tools call such a part: X.weight, X.weight_scale,
// X.weight_zero_point, X.pre_quant_scale. Every other name stays.
std::string name_without_torchao(const std::string& name);

// Unsupported names the first matrix of torchao's whose codes lie in a way that is not read: tiles
// of a kernel, words, or blocks of MX and NVFP4.
Status check_torchao(const std::map<std::string, const TensorView*>& tensors);

}  // namespace foretoken
