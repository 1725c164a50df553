#pragma once
#include <string>

namespace foretoken {

// A tensor's name without what wrappers put before it when they saved it: torch.compile's
// "_orig_mod.", DistributedDataParallel's "module.", FSDP's "_fsdp_wrapped_module." and PEFT's
// "base_model.model." and "base_layer.".
std::string plain_tensor_name(const std::string& name);

// Whether the name is one of an adapter that was not merged into the weights.
bool is_adapter_tensor(const std::string& name);

}  // namespace foretoken
