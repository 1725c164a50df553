#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr int32_t kGemma3nPattern = 5;

LayerSpec gemma3n_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  attention.values_normed = true;
  LayerSpec spec = sandwich_layer(attention, gated_mlp_of(config, layer));
  spec.input_size = config.layer_input_size;
  spec.streams = config.streams;
  spec.laurel_rank = config.laurel_rank;
  return spec;
}

// A list with an entry for each layer, or null where there is none.
Status find_layer_list(const ConfigFields& fields, const char* name, size_t num_layers,
                       const Json** out) {
  const Json* value = fields.find(name);
  if (value == nullptr || !value->is_array()) return {};
  const bool numbers = std::all_of(value->begin(), value->end(),
                                   [](const Json& entry) { return entry.is_number(); });
  if (!numbers || value->size() != num_layers) {
    return fields.wrong(name, "a list with a number for each layer");
  }
  *out = value;
  return {};
}

// Layers may differ in their inner size; what is read of all is the largest.
Status translate_gemma3n(const ConfigFields& fields, Json* json) {
  int32_t num_layers = 0;
  FT_RETURN_IF_ERROR(fields.need_count("num_hidden_layers", &num_layers));
  const Json* sizes = nullptr;
  FT_RETURN_IF_ERROR(find_layer_list(fields, "intermediate_size", size_t(num_layers), &sizes));
  if (sizes != nullptr) {
    (*json)["intermediate_sizes"] = *sizes;
    (*json)["intermediate_size"] = *std::max_element(sizes->begin(), sizes->end());
  }
  const auto type_of = [](int32_t i, int32_t) {
    return (i + 1) % kGemma3nPattern == 0 ? "full_attention" : "sliding_attention";
  };
  return write_layer_types(fields, type_of, json);
}

Status read_inner_sizes(const ConfigFields& fields, ModelConfig* config) {
  const Json* sizes = fields.find("intermediate_sizes");
  for (size_t i = 0; sizes != nullptr && i < config->layers.size(); ++i) {
    const double size = sizes->at(i).get<double>();
    if (size < 1 || size > config->intermediate_size) {
      return fields.wrong("intermediate_size", "a list with a number for each layer");
    }
    if (size != config->intermediate_size) {
      config->layers[i].intermediate_size = static_cast<int32_t>(size);
    }
  }
  return {};
}

Status read_sparsity(const ConfigFields& fields, ModelConfig* config) {
  constexpr size_t kSparseLayers = 10;
  const size_t num_layers = config->layers.size();
  const Json* shares = nullptr;
  FT_RETURN_IF_ERROR(find_layer_list(fields, "activation_sparsity_pattern", num_layers, &shares));
  for (size_t i = 0; i < num_layers; ++i) {
    const float unsaid = num_layers > kSparseLayers && i < kSparseLayers ? 0.95f : 0.0f;
    const float share = shares != nullptr ? shares->at(i).get<float>() : unsaid;
    if (!(share >= 0 && share < 1)) {
      return fields.wrong("activation_sparsity_pattern", "a list of numbers from 0 to below 1");
    }
    config->layers[i].sparsity = share;
  }
  return {};
}

Status read_streams(const ConfigFields& fields, StreamConfig* out) {
  constexpr int32_t kMaxStreams = 8;
  out->count = 4;
  out->scaled = true;
  FT_RETURN_IF_ERROR(fields.read_count("altup_num_inputs", &out->count));
  FT_RETURN_IF_ERROR(fields.read_flag("altup_correct_scale", &out->scaled));
  FT_RETURN_IF_ERROR(fields.read_count_or_none("altup_active_idx", &out->active));
  if (out->count < 2 || out->count > kMaxStreams) {
    return fields.wrong("altup_num_inputs", "a number from 2 to 8");
  }
  if (out->active >= out->count) {
    return fields.wrong("altup_active_idx", "a number below altup_num_inputs");
  }
  return {};
}

Status read_gemma3n(const ConfigFields& fields, ModelConfig* config) {
  config->attention_scale = 1;
  config->laurel_rank = 64;
  config->layer_input_size = 256;
  config->layer_input_vocab = config->vocab_size;
  FT_RETURN_IF_ERROR(fields.read_count("laurel_rank", &config->laurel_rank));
  FT_RETURN_IF_ERROR(fields.read_count("hidden_size_per_layer_input", &config->layer_input_size));
  FT_RETURN_IF_ERROR(fields.read_count("vocab_size_per_layer_input", &config->layer_input_vocab));
  FT_RETURN_IF_ERROR(read_streams(fields, &config->streams));
  FT_RETURN_IF_ERROR(read_inner_sizes(fields, config));
  FT_RETURN_IF_ERROR(read_sparsity(fields, config));
  return share_kv(fields, &config->layers);
}

constexpr const char* kGemma3nDefaults =
    R"({"vocab_size": 262400, "hidden_size": 2048, "intermediate_size": 16384,
        "num_hidden_layers": 35, "num_attention_heads": 8, "num_key_value_heads": 2,
        "head_dim": 256, "max_position_embeddings": 32768, "sliding_window": 512,
        "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": true,
        "final_logit_softcapping": 30.0, "num_kv_shared_layers": 15,
        "vocab_size_per_layer_input": 262144, "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0})";

// Tensors of the parts that read images and sounds.
constexpr const char* kGemma3nMedia[] = {
    "model.vision_tower.", "model.audio_tower.", "model.embed_vision.", "model.embed_audio.",
    "vision_tower.",       "audio_tower.",       "embed_vision.",       "embed_audio."};

}  // namespace

// Google 2025: Gemma 3's blocks between residual streams of which each works on one, with a learned
// path around attention, embeddings for each layer, MLPs that are sparse in the first layers, and
// last layers that read the keys and values of earlier ones.
constinit const Architecture kGemma3nArchitecture = {
    .name = "Gemma3nForCausalLM",
    .description = "Gemma 3n, text",
    .defaults = kGemma3nDefaults,
    .window_rule = WindowRule::kPattern,
    .decoder = {.layer = gemma3n_layer, .scaled_embedding = true},
    .translate = translate_gemma3n,
    .read = read_gemma3n,
};

constinit const Architecture kGemma3nConditionalArchitecture = {
    .name = "Gemma3nForConditionalGeneration",
    .description = "Gemma 3n; its text part",
    .defaults = kGemma3nDefaults,
    .window_rule = WindowRule::kPattern,
    .decoder = {.places = {{{"model.language_model.", "lm_head.weight"},
                            {"language_model.model.", "language_model.lm_head.weight"}}},
                .ignored = kGemma3nMedia,
                .layer = gemma3n_layer,
                .scaled_embedding = true},
    .text_config = true,
    .translate = translate_gemma3n,
    .read = read_gemma3n,
};

}  // namespace foretoken
