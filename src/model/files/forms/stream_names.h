#pragma once
#include <map>
#include <string>

#include "model/files/containers/safetensors.h"

namespace foretoken {

// Whether a checkpoint of DeepSeek V4 is as transformers saves it: under `model.` with the names of
// published files or, where it keeps none of these, with those of its own modules.
bool has_own_stream_names(const std::map<std::string, const TensorView*>& tensors);

// The name that published files have for a tensor of such a checkpoint. Experts of its own form are
// those of all together: `experts.gate_up_proj` and `experts.w2`.
std::string published_stream_name(const std::string& name);

// Whether a checkpoint of Hy4 is as transformers saves it, with pieces of names in places that
// published files do not have them in;
bool has_moved_stream_names(const std::map<std::string, const TensorView*>& tensors);
// the name that published files have for a tensor of it.
std::string unmoved_stream_name(const std::string& name);

}  // namespace foretoken
