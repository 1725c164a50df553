#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/layer/layer_spec.h"

// What encoders, whose rows see whole texts, have in common.
namespace foretoken {

// What guesses words and what judges texts.
inline constexpr const char* kEncoderHeads[] = {"pooler.",
                                                "cls.",
                                                "lm_head.",
                                                "classifier.",
                                                "linear.",
                                                "pre_classifier.",
                                                "qa_outputs.",
                                                "head.",
                                                "decoder.",
                                                "vocab_transform.",
                                                "vocab_layer_norm.",
                                                "vocab_projector.",
                                                "discriminator_predictions.",
                                                "generator_predictions.",
                                                "predictions.",
                                                "sop_classifier.",
                                                "lm_predictions.",
                                                "mask_predictions.",
                                                "generator_lm_head."};

// Of such layers, under the names that model/files/encoder_names.h gives the tensors.
constexpr DecoderTraits encoder(LayerSpec (*layer)(const ModelConfig&, const LayerConfig&)) {
  return {.embedding_norm = "embed_norm",
          .ignored = kEncoderHeads,
          .layer = layer,
          .norms = {.kind = NormKind::kLayer, .bias = true}};
}

// Of a field that is there: "<name> <value> is not supported; use a model with <instead>".
Status not_built(const ConfigFields& fields, const char* name, const std::string& instead);

// Norms are of the residual with what a part adds.
LayerSpec summed_layer(const MixerSpec& attention, const FeedForwardSpec& feed_forward);

// As Architecture::translate: BERT's fields, of a table of positions whose first rows are of
// padding. InvalidArgument or Unsupported names the field at fault.
Status translate_roberta(const ConfigFields& fields, nlohmann::json* json);
// As Architecture::read, of models with a table of positions and no last norm.
Status read_placed(const ConfigFields& fields, ModelConfig* config);

// Sets the fields of a config.json: rows see later ones. Files of a body alone have no output
// matrix, and nothing reads that of others.
void see_whole_texts(nlohmann::json* json);

}  // namespace foretoken
