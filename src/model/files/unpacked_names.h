#pragma once
#include <map>
#include <string>
#include <vector>

#include "model/files/containers/safetensors.h"
#include "model/files/containers/unpacked_tensor.h"
#include "model/files/forms/quantization.h"

namespace foretoken {

// A tensor that is to be unpacked, under the name that it has then.
struct NamedUnpacked {
  std::string name;
  UnpackedParts parts;
  const TensorView* marlin_scales = nullptr;  // of kMarlin24, which become X.weight_scale
  std::vector<std::string> names;             // of all its tensors
};

// Those of a checkpoint: X.compressed with X.bitmask and X.shape (and X.row_offsets), which become
// X.weight; X.weight_packed with X.meta and X.scale_packed, which stays so; X.weight of six bits
// where the quantization has them. InvalidArgument where tensors of one are missing.
Result<std::vector<NamedUnpacked>> find_unpacked(
    const std::map<std::string, const TensorView*>& tensors, const Quantization& quantization);

// Whether find_unpacked may find any.
bool has_unpacked(const std::map<std::string, const TensorView*>& tensors);

}  // namespace foretoken
