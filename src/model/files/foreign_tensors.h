#pragma once
#include <map>
#include <string>

#include "base/result.h"
#include "model/files/containers/safetensors.h"

namespace foretoken {

// Unsupported names the first tensor that only a package writes whose matrices are not read
// (ExLlamaV2 and V3, AQLM, VPTQ, optimum-quanto, compressed-tensors' bit masks), and what to use
// instead: for folders whose config.json says nothing of it.
Status check_foreign_tensors(const std::map<std::string, const TensorView*>& tensors);

}  // namespace foretoken
