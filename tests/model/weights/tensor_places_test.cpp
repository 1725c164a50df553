#include "model/weights/tensor_places.h"

#include <gtest/gtest.h>

#include <set>

namespace foretoken {
namespace {

TEST(TensorPlaces, NamesOfTheEnds) {
  const DecoderTraits traits;
  const std::set<std::string> names = {"language_model.model.embed_tokens.weight",
                                       "language_model.lm_head.weight"};
  const DecoderTraits::Place place =
      find_place(traits, [&](const std::string& name) { return names.contains(name); });
  EXPECT_EQ(embedding_name(traits, place), "language_model.model.embed_tokens.weight");
  EXPECT_EQ(bias_name(place), "language_model.lm_head.bias");
  ModelConfig config;
  for (const bool tied : {false, true}) {
    config.tie_word_embeddings = tied;
    EXPECT_EQ(output_matrix_name(config, traits, place),
              tied ? embedding_name(traits, place) : "language_model.lm_head.weight");
    EXPECT_EQ(is_looked_up(embedding_name(traits, place), config, traits, place), !tied);
    for (const char* table : {"embed_positions.weight", "embed_tokens_per_layer.weight"}) {
      EXPECT_TRUE(
          is_looked_up(std::string("language_model.model.") + table, config, traits, place));
    }
    EXPECT_FALSE(is_looked_up("language_model.lm_head.weight", config, traits, place));
    EXPECT_FALSE(is_looked_up("embed_positions.weight", config, traits, place));
  }
}

// A text part that was saved alone.
TEST(TensorPlaces, ABodyOfItsOwnIsFoundLast) {
  DecoderTraits traits;
  traits.places = {
      {{"language_model.model.", "language_model.lm_head.weight"}, {nullptr, nullptr}}};
  const auto place_among = [&](const std::set<std::string>& names) {
    return std::string(
        find_place(traits, [&](const std::string& name) { return names.contains(name); }).body);
  };
  EXPECT_EQ(place_among({"model.embed_tokens.weight", "lm_head.weight"}), "model.");
  EXPECT_EQ(place_among({"model.embed_tokens.weight", "language_model.model.embed_tokens.weight"}),
            "language_model.model.");
}

}  // namespace
}  // namespace foretoken
