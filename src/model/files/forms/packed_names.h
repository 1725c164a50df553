#pragma once
#include <map>
#include <string>
#include <vector>

#include "model/files/containers/safetensors.h"
#include "model/files/forms/packed_tensor.h"

namespace foretoken {

// A quantised matrix of a checkpoint by its base name ("model.layers.0.mlp.up_proj").
struct NamedParts {
  std::string base;
  PackedParts parts;
  std::vector<std::string> names;  // of all its tensors, those without a use included
};

// All of a checkpoint of that layout, whose integers are words. InvalidArgument when a matrix lacks
// its scales, or its zeros where the layout has them, or is of another layout.
Result<std::vector<NamedParts>> find_packed(const std::map<std::string, const TensorView*>& tensors,
                                            PackLayout layout);

// Whether there are tensors that only quantised checkpoints have.
bool has_packed(const std::map<std::string, const TensorView*>& tensors);

}  // namespace foretoken
