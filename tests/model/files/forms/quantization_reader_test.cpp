#include "model/files/forms/quantization_reader.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(QuantizationReader, TheFirstErrorStays) {
  const nlohmann::json json = {
      {"bits", 4}, {"name", "x"}, {"list", {1, 2}}, {"half", 0.5}, {"none", nullptr}};
  const std::string where = "config.json";
  QuantizationReader reader(json, where);
  EXPECT_EQ(reader.integer("b", "bits", 8), 4);
  EXPECT_EQ(reader.integer("c", "", 8), 8);
  EXPECT_EQ(reader.text("name", ""), "x");
  EXPECT_EQ(reader.find("none"), nullptr);
  EXPECT_TRUE(is_empty_field(reader.find("none")));
  reader.want_none("none");
  EXPECT_FALSE(reader.failed());
  EXPECT_EQ(reader.integer("half", "", 8), 8);
  reader.want(false, "later");
  reader.want_because(false, "later", "no reason");
  EXPECT_EQ(reader.status().message().find(
                "config.json: quantization_config with half 0.5 is not read; use"),
            0u)
      << reader.status().message();
}

TEST(QuantizationReader, BlocksHaveTwoSizes) {
  const std::string where = "config.json";
  const nlohmann::json json = {{"block", {64, 128}},
                               {"one", {64}},
                               {"text", "32x256"},
                               {"crooked", "32x256x"},
                               {"long", "0000000000000032x64"},
                               {"zero", "0x64"}};
  QuantizationReader reader(json, where);
  Quantization found;
  read_block(reader, "block", &found);
  EXPECT_EQ(found.block_rows, 64);
  EXPECT_EQ(found.block_cols, 128);
  EXPECT_FALSE(reader.failed());
  for (const char* wrong : {"crooked", "long", "zero"}) {
    QuantizationReader other(json, where);
    read_block(other, wrong, &found);
    EXPECT_TRUE(other.failed()) << wrong;
  }
  read_block(reader, "text", &found);
  EXPECT_EQ(found.block_rows, 32);
  EXPECT_EQ(found.block_cols, 256);
  read_block(reader, "one", &found);
  EXPECT_TRUE(reader.failed());
}

}  // namespace
}  // namespace foretoken
