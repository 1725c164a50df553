#include "model/files/forms/quantization_compressed.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using Json = nlohmann::json;

Result<Quantization> compressed_of(const char* format, const Json& weights, const Json& more = {}) {
  Json json = {{"format", format}, {"config_groups", {{"group_0", {{"weights", weights}}}}}};
  if (more.is_object()) json.update(more);
  const std::string where = "config.json";
  QuantizationReader reader(json, where);
  Quantization found;
  FT_RETURN_IF_ERROR(read_compressed(reader, where, &found));
  if (reader.failed()) return reader.status();
  return found;
}

const Json kFourBits = {
    {"num_bits", 4}, {"type", "int"}, {"strategy", "group"}, {"group_size", 128}};
const Json kFloats = {{"num_bits", 8}, {"type", "float"}, {"strategy", "channel"}};

TEST(QuantizationCompressed, SparseWeightsAreRead) {
  const auto marlin =
      compressed_of("marlin-24", kFourBits, {{"sparsity_config", {{"format", "dense"}}}});
  ASSERT_TRUE(marlin.ok()) << marlin.status().message();
  EXPECT_EQ(marlin.value().layout, PackLayout::kCompressed);
  EXPECT_EQ(marlin.value().group, 128);
  for (const char* format : {"sparse-24-bitmask", "sparse-bitmask", "dense"}) {
    const auto masked =
        compressed_of("float-quantized", kFloats, {{"sparsity_config", {{"format", format}}}});
    ASSERT_TRUE(masked.ok()) << masked.status().message();
    EXPECT_TRUE(masked.value().is_fp8);
  }
  const auto other =
      compressed_of("float-quantized", kFloats, {{"sparsity_config", {{"format", "sparse-16"}}}});
  EXPECT_NE(other.status().message().find("a sparsity_config of another format"),
            std::string::npos);
}

Json transform(const char* location) {
  const Json one = {{"targets", {"Linear"}}, {"location", location}, {"inverse", false}};
  const Json scheme = {{"type", "hadamard"}, {"apply", {one}}};
  return {{"transform_config", {{"config_groups", {{"R1", scheme}}}}}};
}

// What was done to weights needs nothing more; what is done to rows is refused with the reason.
TEST(QuantizationCompressed, TransformsOfWeightsAloneAreRead) {
  for (const char* location : {"weight_input", "weight_output"}) {
    EXPECT_TRUE(compressed_of("pack-quantized", kFourBits, transform(location)).ok()) << location;
  }
  for (const char* location : {"input", "output", "k_cache", "q_attn"}) {
    const auto turned = compressed_of("pack-quantized", kFourBits, transform(location));
    EXPECT_NE(turned.status().message().find("expect rows that Hadamard matrices turned"),
              std::string::npos)
        << location;
  }
  for (const Json& odd : {Json{{"config_groups", 3}},
                          Json{{"config_groups", {{"R1", Json::object()}}}}, Json::array({1})}) {
    EXPECT_FALSE(compressed_of("pack-quantized", kFourBits, {{"transform_config", odd}}).ok())
        << odd;
  }
}

// As llm-compressor writes attention's own group.
TEST(QuantizationCompressed, GroupsOfAttentionHaveNoWeights) {
  const Json attention = {{"targets", {"LlamaAttention"}}, {"weights", nullptr}};
  const Json both = {{"group_0", {{"weights", kFloats}}}, {"attention", attention}};
  const auto found = compressed_of("float-quantized", kFloats, {{"config_groups", both}});
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_TRUE(found.value().rounds_activations);
  EXPECT_TRUE(found.value().is_fp8);
  const std::string where = "config.json";
  const Json alone = {{"config_groups", {{"attention", attention}}}};
  EXPECT_FALSE(quantizes_weights(QuantizationReader(alone, where)));
}

TEST(QuantizationCompressed, PlainWeightsHaveNoGroups) {
  const std::string where = "config.json";
  const Json sparse = {{"format", "dense"},
                       {"config_groups", Json::object()},
                       {"sparsity_config", {{"format", "sparse-24-bitmask"}}}};
  QuantizationReader reader(sparse, where);
  EXPECT_FALSE(quantizes_weights(reader));
  EXPECT_TRUE(leaves_weights_plain(reader));
}

}  // namespace
}  // namespace foretoken
