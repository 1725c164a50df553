#pragma once
#include <array>
#include <span>
#include <string>

#include "model/layer_pattern.h"

namespace foretoken {

// How the decoder of an architecture differs from Llama's, where config.json does not say so.
struct DecoderTraits {
  // Where the tensors of the decoder and its output matrix stand in a checkpoint; the first pair
  // whose embedding exists is taken. A second pair may be null.
  struct Place {
    const char* body;
    const char* head;
  };
  std::array<Place, 2> places = {{{"model.", "lm_head.weight"}, {nullptr, nullptr}}};
  // Beginnings of tensors that belong to other parts of a model, such as a vision tower.
  std::span<const char* const> ignored = {};
  bool fused_projections = false;  // qkv_proj and gate_up_proj are one tensor each
  bool qkv_bias = false;           // q, k and v have biases and o has none
  bool qk_norm = false;            // q and k of each head are normed before they turn
  bool post_norms = false;         // what a block adds is normed before it is added
  bool offset_norms = false;       // a stored norm weight w stands for 1 + w
  bool scaled_embedding = false;   // times sqrt(hidden_size)
};

// A supported architecture, as plain data: one row of architecture.cpp.
struct Architecture {
  const char* name;         // in the `architectures` of a config.json
  const char* description;  // for listings
  // JSON object of the fields that a config.json of this architecture may leave out.
  const char* defaults = "{}";
  WindowRule window_rule = WindowRule::kNever;
  DecoderTraits decoder = {};
  bool text_config = false;  // the fields of the decoder lie in `text_config`
};

// Defined in arch/, each in the file of its name.
extern const Architecture kGemma2Architecture;
extern const Architecture kGemma3Architecture;
extern const Architecture kGemma3ConditionalArchitecture;
extern const Architecture kLlamaArchitecture;
extern const Architecture kMistralArchitecture;
extern const Architecture kPhi3Architecture;
extern const Architecture kQwen2Architecture;
extern const Architecture kQwen3Architecture;
extern const Architecture kSmolLm3Architecture;

// Every one that is read.
std::span<const Architecture> architectures();
// Null when the name is unknown.
const Architecture* find_architecture(const std::string& name);
// "A, B, C", for messages.
std::string architecture_names();

}  // namespace foretoken
