#include "model/weights/tensor_places.h"

#include <string_view>

namespace foretoken {
namespace {

// Where else decoders stand when they were saved as a part of something larger, or without their
// output matrix.
constexpr DecoderTraits::Place kOtherPlaces[] = {
    {"model.language_model.", "lm_head.weight"},
    {"language_model.model.", "language_model.lm_head.weight"},
    {"language_model.model.", "lm_head.weight"},
    {"language_model.model.", "language_model.output.weight"},
    {"language_model.backbone.", "language_model.lm_head.weight"},
    {"thinker.model.", "thinker.lm_head.weight"},
    {"llm.model.", "llm.lm_head.weight"},
    {"model.text_model.", "lm_head.weight"},
    {"language_model.", "lm_head.weight"},
    {"model.", "lm_head.weight"},
    {"", "lm_head.weight"},
};

}  // namespace

DecoderTraits::Place find_place(const DecoderTraits& traits, const HasTensor& has) {
  for (const DecoderTraits::Place& place : traits.places) {
    if (place.body != nullptr && has(embedding_name(traits, place))) return place;
  }
  const DecoderTraits::Place* found = nullptr;
  for (const DecoderTraits::Place& place : kOtherPlaces) {
    if (!has(embedding_name(traits, place))) continue;
    if (has(place.head)) return place;
    if (found == nullptr) found = &place;
  }
  return found != nullptr ? *found : traits.places[0];
}

std::string embedding_name(const DecoderTraits& traits, const DecoderTraits::Place& place) {
  return std::string(place.body) + traits.embedding + ".weight";
}

std::string output_matrix_name(const ModelConfig& config, const DecoderTraits& traits,
                               const DecoderTraits::Place& place) {
  if (!config.tie_word_embeddings) return place.head;
  return embedding_name(traits, place);
}

std::string bias_name(const DecoderTraits::Place& place) {
  const std::string_view head = place.head;
  return std::string(head.substr(0, head.rfind('.'))) + ".bias";
}

bool is_looked_up(const std::string& name, const ModelConfig& config, const DecoderTraits& traits,
                  const DecoderTraits::Place& place) {
  const std::string body = place.body;
  return (name == embedding_name(traits, place) && !config.tie_word_embeddings) ||
         name == body + traits.positions + ".weight" || name == body + kLayerInputTable;
}

}  // namespace foretoken
