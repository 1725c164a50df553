#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

// Layers that read images alone leave texts as they are.
LayerSpec mllama_layer(const ModelConfig& config, const LayerConfig& layer) {
  if (!layer.attention) return {.mixer = Absent{}, .feed_forward = Absent{}};
  return llama_layer(config, layer);
}

Status read_mllama(const ConfigFields& fields, ModelConfig* config) {
  config->embedding_rows = config->vocab_size + 8;
  const nlohmann::json* cross = fields.find("cross_attention_layers");
  if (cross == nullptr) return fields.missing("cross_attention_layers");
  const char* wanted = "a list of the numbers of layers";
  if (!cross->is_array()) return fields.wrong("cross_attention_layers", wanted);
  for (const nlohmann::json& number : *cross) {
    if (!number.is_number_integer() || number < 0 || number >= config->num_layers) {
      return fields.wrong("cross_attention_layers", wanted);
    }
    LayerConfig& layer = config->layers[number.get<size_t>()];
    layer.attention = layer.feed_forward = false;
  }
  return {};
}

constexpr const char* kMllamaVision[] = {"vision_model.", "multi_modal_projector.",
                                         "model.vision_model.", "model.multi_modal_projector."};

}  // namespace

// Grattafiori et al. 2024: Llama 3.1 with layers between its own that attend to images, of which
// only the text part is read. Its table has eight rows more for tokens of images.
constinit const Architecture kMllamaArchitecture = {
    .name = "MllamaForConditionalGeneration",
    .description = "Llama 3.2 Vision; its text part",
    .defaults = R"({"vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,
                    "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
                    "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
                    "rope_theta": 500000.0,
                    "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38]})",
    .decoder = {.places = {{{"language_model.model.", "language_model.lm_head.weight"},
                            {"model.language_model.", "lm_head.weight"}}},
                .ignored = kMllamaVision,
                .layer = mllama_layer},
    .text_config = true,
    .read = read_mllama,
};

}  // namespace foretoken
