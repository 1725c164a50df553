#pragma once
#include <array>
#include <span>
#include <string>

#include "model/config/layer_pattern.h"

namespace foretoken {

struct LayerSpec;
struct ModelConfig;

// How the norms of a decoder are stored.
struct NormForm {
  float offset = 0;  // a stored weight w stands for w + offset
};

// The layer of Llama (model/layer/layer_spec.h).
LayerSpec llama_layer(const ModelConfig& config, const LayerConfig& layer);

// What makes a decoder one architecture's rather than another's, where config.json does not say so.
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
  // Composes a layer from the config and what the pattern of layers says about this one.
  LayerSpec (*layer)(const ModelConfig& config, const LayerConfig& layer) = llama_layer;
  NormForm norms = {};            // of all norms
  bool scaled_embedding = false;  // times sqrt(hidden_size)
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
