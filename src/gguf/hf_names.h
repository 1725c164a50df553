#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gguf/gguf_file.h"

namespace foretoken {

// The name of a tensor in a Hugging Face checkpoint of the same model; none for tensors that such a
// checkpoint does not hold (rope_freqs.weight).
std::optional<std::string> hf_tensor_name(std::string_view gguf_name);

// The other way; none for tensors that GGUF files do not hold.
std::optional<std::string> gguf_tensor_name(std::string_view hf_name);

// The architectures that are read: general.architecture, and what config.json calls them.
struct GgufArchitecture {
  std::string_view name;
  std::string_view hf_class;
  std::string_view model_type;
  // Query and key rows of a head alternate between its two halves (the pairs that RoPE turns lie
  // side by side), while Hugging Face has one half behind the other.
  bool interleaves_heads;
};

// Unsupported names the architecture and lists what exists.
Result<const GgufArchitecture*> gguf_architecture(const GgufFile& file);

// How models of a Hugging Face class are written: Llama, Mistral (as llama), Qwen 2 and 3. Null for
// other classes.
const GgufArchitecture* gguf_architecture_for(std::string_view hf_class);
// Those classes, for messages.
std::string gguf_hf_classes();

}  // namespace foretoken
