#pragma once
#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "model/config/config_fields.h"
#include "model/config/layer_pattern.h"

namespace foretoken {

struct LayerSpec;
struct ModelConfig;

enum class NormKind : uint8_t {
  kRms,    // x / sqrt(mean(x^2) + eps) (Zhang and Sennrich 2019)
  kLayer,  // (x - mean(x)) / sqrt(variance(x) + eps) (Ba et al. 2016)
};

// What the norms of a decoder are, and how they are stored.
struct NormForm {
  NormKind kind = NormKind::kRms;
  float offset = 0;      // a stored weight w stands for w + offset
  bool bias = false;     // a vector ".bias" beside ".weight"
  bool weighted = true;  // false: nothing is stored, the weights are 1 (OLMo 1)
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
  // Names behind a place's body: of the embedding, of what stands before a layer's number, of the
  // last norm, of the table of positions, and of the embedding's norm.
  const char* embedding = "embed_tokens";
  const char* layers = "layers.";
  int32_t layers_each = 1;  // of these, that one number has (LayerConfig::part)
  const char* last_norm = "norm";
  const char* positions = "embed_positions";
  const char* embedding_norm = nullptr;  // of what enters the first layer (BLOOM); null: none
  // Matrices of layers lie in the file as [inputs, outputs] (Conv1D of GPT-2).
  bool transposed = false;
  // Beginnings of tensors that belong to other parts of a model, such as a vision tower.
  std::span<const char* const> ignored = {};
  // Composes a layer from the config and what the pattern of layers says about this one.
  LayerSpec (*layer)(const ModelConfig& config, const LayerConfig& layer) = llama_layer;
  NormForm norms = {};  // of all norms
  // Of the embedding's norm and of the last one, where they are of other kinds (Muse Glimmer).
  std::optional<NormForm> embedding_norm_form = {};
  std::optional<NormForm> last_norm_form = {};
  bool scaled_embedding = false;  // times sqrt(hidden_size)
};

// How draft modules (MTP) in the files of an architecture are named, and what they pair. The
// defaults are those of DeepSeek V3.
struct MtpForm {
  const char* layers = "layers.";  // before a module's number
  bool counts_on = true;           // numbers go on from the target's layers
  // There is one, which is made of layers with numbers of their own: names below begin with these,
  // and those of its layer are composed with them (`layer`).
  bool unnumbered = false;
  const char* projection = "eh_proj";
  // Of the embedding, where the projection is of the state alone, each of its streams by itself;
  // null: the projection reads both.
  const char* embed_projection = nullptr;
  const char* embed_norm = "enorm";
  const char* state_norm = "hnorm";
  const char* output_norm = "shared_head.norm";
  const char* head = "shared_head.head";  // the output matrix of a module that has its own
  bool state_first = false;               // the projection reads [state, embedding]
  bool chains_normed = false;             // the next draft pairs with what leaves output_norm
  // All modules pair with the target's states, none with what the module before it made.
  bool passes_states = false;
  // Beside a target with streams of hidden states (HyperConfig), whether modules have streams as
  // its layers, and pair with those that leave the last one.
  bool in_streams = true;
  const char* unread = nullptr;  // in names of a module's tensors that its layer does without
  // Before the names of the embedding and of output_norm where modules have them together, and
  // empty where these are the target's; null: each has its own.
  const char* together = nullptr;
  bool all_together = false;  // projection and the norms before it lie there, too
  // projection and the norms before it are no parts of the layer, and a module's number stands
  // behind their names (ERNIE).
  bool numbered_apart = false;
  // How many there are where config.json does not say it and no file can be counted.
  int32_t count = 0;
  // Composes their layer, without experts and as those of the target's with a window (`windowed`)
  // or without; null: the decoder's layer, which sees everything.
  LayerSpec (*layer)(const ModelConfig& config, const LayerConfig& layer) = nullptr;
  bool windowed = false;
};

// A supported architecture, as plain data: one row of architecture.cpp.
struct Architecture {
  const char* name;         // in the `architectures` of a config.json
  const char* description;  // for listings
  // JSON object of the fields that a config.json of this architecture may leave out.
  const char* defaults = "{}";
  // The end of text that transformers' default config names: where it lies outside the vocabulary
  // it cannot come, and is no fault of the file. -1: there is none.
  int32_t default_end = -1;
  WindowRule window_rule = WindowRule::kNever;
  DecoderTraits decoder = {};
  bool text_config = false;  // the fields of the decoder lie in `text_config`, if there is one
  MtpForm mtp = {};
  // Some layers have a window: those without one know no positions (NoPE).
  bool only_windows_turn = false;
  // What layer_types has for layers whose mixer is no attention (LayerConfig::recurrent); null:
  // there are none.
  const char* recurrent_type = nullptr;
  // Translates fields of a config.json that have other names than Llama's, before anything is read
  // and behind `defaults`; null: there are none.
  Status (*translate)(const ConfigFields& fields, nlohmann::json* json) = nullptr;
  // Changes fields of a config.json, as the file has them, to those of weights that MLX's tools
  // have sanitised (settled_fields.h); null: they are the same.
  void (*take_mlx)(nlohmann::json* fields) = nullptr;
  // In the name of a tensor that other folders do not have, where nothing else tells these.
  const char* mlx_sign = nullptr;
  // Reads what only this architecture has into a config that is complete otherwise; null: nothing.
  Status (*read)(const ConfigFields& fields, ModelConfig* config) = nullptr;
};

// Defined in arch/, in the file of its family.
#define FT_ARCHITECTURE(name) extern const Architecture k##name##Architecture;
#include "model/config/architectures.def"
#undef FT_ARCHITECTURE

// Every one that is read.
std::span<const Architecture> architectures();
// Null when the name is unknown.
const Architecture* find_architecture(const std::string& name);
// "; did you mean 'LlamaForCausalLM'? foretoken inspect --families lists what loads", for messages
// about a name that is unknown; the question only where one is near.
std::string known_architectures_hint(const std::string& name);

}  // namespace foretoken
