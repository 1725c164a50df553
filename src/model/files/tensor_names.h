#pragma once
#include <string>
#include <string_view>

namespace foretoken {

// A tensor's name without what wrappers put before it when they saved it: torch.compile's
// "_orig_mod.", DistributedDataParallel's "module.", FSDP's "_fsdp_wrapped_module." and PEFT's
// "base_model.model.", "base_layer." and "modules_to_save.".
std::string plain_tensor_name(const std::string& name);

// What a trainer of its own put before the name of a model's first tensor ("pretrained_model.",
// "_forward_module.", the name of its field), which then stands before all; empty for other tensors
// and for the places that families with a text part have.
std::string_view wrapper_of(std::string_view name);

// Whether a tensor is one that generation never reads: buffers of rotary positions, the heads that
// judge texts while a model is trained, and adapters for rows of images and speech (Phi-4
// Multimodal).
bool is_of_training(std::string_view name);

// Whether the name is one of an adapter that was not merged into the weights.
bool is_adapter_tensor(const std::string& name);

// A name of Mistral's own layout, layers.N.attention.wq.weight and its like, as folders of
// transformers have it. Every other name stays.
std::string name_without_mistral(const std::string& name);

// Whether a name of that layout belongs to the part that reads images.
bool is_mistral_vision(std::string_view name);

}  // namespace foretoken
