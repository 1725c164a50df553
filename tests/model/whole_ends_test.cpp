#include "model/whole_ends.h"

#include <gtest/gtest.h>

#include <cstring>

#include "model/forward_harness.h"

namespace foretoken {
namespace {

// A table of 6 rows and the second half of an output matrix, of 3.
std::vector<WholeEnd> two_ends() {
  return {{"embed_tokens", true, 6, 0, 6, 4, 2.0f}, {"lm_head", false, 6, 3, 3, 4, 1.0f}};
}

WholeMatrix whole(const std::string& module, int64_t rows, int64_t columns) {
  WholeMatrix matrix{module, rows, columns, {}};
  matrix.values.resize(static_cast<size_t>(rows * columns) * sizeof(float));
  for (int64_t i = 0; i < rows * columns; ++i) {
    const auto value = static_cast<float>(i);
    std::memcpy(&matrix.values[static_cast<size_t>(i) * sizeof value], &value, sizeof value);
  }
  return matrix;
}

LoraAdapter adapter_of(std::vector<WholeMatrix> wholes) {
  return {.dtype = DType::kF32, .linears = {}, .wholes = std::move(wholes), .bases = {}};
}

std::string message_of(const WholeEnds::Limits& limits, const WholeMatrix& matrix,
                       bool is_checked = false) {
  WholeEnds ends(test::model_device(), DType::kF32, limits);
  EXPECT_TRUE(ends.take(two_ends()).ok());
  const auto placed = ends.place(adapter_of({matrix}), 0, is_checked);
  return placed.ok() ? "" : placed.status().message();
}

void expect_in(const std::string& part, const std::string& message) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(WholeEnds, AnImageHasTheRowsThatARankHas) {
  WholeEnds ends(test::model_device(), DType::kF32, {.num_slots = 2});
  ASSERT_TRUE(ends.take(two_ends()).ok());
  EXPECT_GT(ends.device_bytes(), 2 * (8 + 8) * 4 * 4);
  const LoraAdapter adapter =
      adapter_of({whole("lm_head", 5, 4), whole("model.embed_tokens", 6, 4)});
  const auto copies = ends.place(adapter, 32, false).value();
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].offset, 32u);
  EXPECT_EQ(copies[0].count, 6);
  EXPECT_EQ(copies[1].offset, 32u + copies[0].bytes);
  EXPECT_EQ(copies[1].count, 2) << "rows 3 and 4 of 5";
  std::vector<std::byte> image(copies[1].offset + copies[1].bytes);
  ends.fill(copies, adapter, image.data());
  const auto at = [&](size_t end, size_t element) {
    float value;
    std::memcpy(&value, &image[copies[end].offset + element * sizeof value], sizeof value);
    return value;
  };
  EXPECT_EQ(at(0, 23), 23);
  EXPECT_EQ(at(1, 0), 12) << "row 3";
  EXPECT_EQ(at(1, 7), 19);
  EXPECT_EQ(at(1, 8), 0) << "it has no row 5";
}

TEST(WholeEnds, WhatHasNoPlaceIsToldWithTheRemedy) {
  const WholeEnds::Limits room{.num_slots = 1};
  EXPECT_EQ(message_of(room, whole("model.lm_head", 6, 4)), "");
  expect_in("start with --lora-modules-to-save", message_of({}, whole("lm_head", 6, 4)));
  expect_in("'lm_head', [7, 4], but the model's is [6, 4]: its vocabulary was enlarged; start",
            message_of(room, whole("lm_head", 7, 4)));
  expect_in("--lora-extra-vocab-size 1 and", message_of(room, whole("lm_head", 7, 4)));
  expect_in("it was trained on another model", message_of(room, whole("embed_tokens", 6, 5)));
  expect_in("'score', which cannot be another than the model's",
            message_of(room, whole("score", 2, 4)));
  EXPECT_EQ(message_of(room, whole("score", 2, 4), true), "") << "another stage knows it";
}

// Of six rows the model has four.
TEST(WholeEnds, IdsBehindTheModelsHaveRowsWhereThereIsRoom) {
  const WholeEnds::Limits added{.num_slots = 1, .added_ids = 2};
  for (const int64_t rows : {3, 4, 5, 6}) {
    EXPECT_EQ(message_of(added, whole("lm_head", rows, 4)), "");
    EXPECT_EQ(message_of(added, whole("embed_tokens", rows, 4)), "");
  }
  expect_in("'lm_head', [7, 4], but the model's is [4, 4]",
            message_of(added, whole("lm_head", 7, 4)));
  expect_in("--lora-extra-vocab-size 3 and", message_of(added, whole("lm_head", 7, 4)));
  WholeEnds ends(test::model_device(), DType::kF32, added);
  ASSERT_TRUE(ends.take(two_ends()).ok());
  const LoraAdapter five = adapter_of({whole("lm_head", 5, 4), whole("embed_tokens", 6, 4)});
  EXPECT_EQ(ends.num_ids(five, true), 6);
  EXPECT_EQ(ends.num_ids(five, false), 5);
  EXPECT_EQ(ends.num_ids(adapter_of({}), true), 0);
}

TEST(WholeEnds, FewerIdsAreRefusedWhereLogitsAreCapped) {
  const WholeEnds::Limits capped{.num_slots = 1, .takes_fewer_ids = false};
  expect_in("its logits are capped", message_of(capped, whole("lm_head", 5, 4)));
  EXPECT_EQ(message_of(capped, whole("lm_head", 6, 4)), "");
  EXPECT_EQ(message_of(capped, whole("embed_tokens", 5, 4)), "");
  const WholeEnds::Limits biased{.num_slots = 1, .head_has_bias = true};
  expect_in("has a bias", message_of(biased, whole("lm_head", 6, 4)));
}

}  // namespace
}  // namespace foretoken
