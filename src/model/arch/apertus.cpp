#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec apertus_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  LayerSpec spec = pre_norm_layer(attention, plain_mlp_of(config, layer));
  spec.mixer_norm = "attention_layernorm";
  spec.feed_forward_norm = "feedforward_layernorm";
  return spec;
}

constexpr const char* kApertusDefaults =
    R"({"max_position_embeddings": 65536, "rms_norm_eps": 1e-5, "hidden_act": "xielu",
        "rope_theta": 12000000.0})";

constexpr const char* kApertusMedia[] = {"model.vision_tokenizer.", "model.audio_tokenizer.",
                                         "vision_tokenizer.", "audio_tokenizer."};

// The output matrix may leave out the ids of images and sounds, which the embedding has.
Status read_apertus1p5(const ConfigFields& fields, ModelConfig* config) {
  int32_t outputs = config->vocab_size;
  FT_RETURN_IF_ERROR(fields.read_count("output_vocab_size", &outputs));
  if (outputs > config->vocab_size) {
    return fields.wrong("output_vocab_size", "at most vocab_size");
  }
  if (outputs < config->vocab_size && config->tie_word_embeddings) {
    return fields.wrong("output_vocab_size", "left out where tie_word_embeddings is true");
  }
  config->embedding_rows = config->vocab_size;
  config->vocab_size = outputs;
  return {};
}

}  // namespace

// Swiss AI Initiative 2025: norms of queries and keys, and an MLP without a gate whose activation
// is learned (xIELU).
constinit const Architecture kApertusArchitecture = {
    .name = "ApertusForCausalLM",
    .description = "Apertus",
    .defaults = kApertusDefaults,
    .decoder = {.layer = apertus_layer},
};

// Swiss AI Initiative 2026: the same, whose vocabulary holds codes of images and sounds.
constinit const Architecture kApertus1p5Architecture = {
    .name = "Apertus1p5ForConditionalGeneration",
    .description = "Apertus 1.5; its text part",
    .defaults = kApertusDefaults,
    .decoder = {.places = {{{"model.language_model.", "lm_head.weight"},
                            {"model.", "lm_head.weight"}}},
                .ignored = kApertusMedia,
                .layer = apertus_layer},
    .text_config = true,
    .read = read_apertus1p5,
};

constinit const Architecture kApertus1p5TextArchitecture = {
    .name = "Apertus1p5TextForCausalLM",
    .description = "Apertus 1.5, text",
    .defaults = kApertusDefaults,
    .decoder = {.places = {{{"model.", "lm_head.weight"},
                            {"model.language_model.", "lm_head.weight"}}},
                .ignored = kApertusMedia,
                .layer = apertus_layer},
    .read = read_apertus1p5,
};

}  // namespace foretoken
