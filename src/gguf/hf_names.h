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

}  // namespace foretoken
