#include "kernels/latent/compressed_entry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace foretoken {
namespace {

TEST(CompressedEntry, CodesTakeTheBytesThatTheExampleSays) {
  const EntryForm plain{KvFormat::kPlain, DType::kBF16, 512, 64};
  EXPECT_EQ(plain.bytes(), 1024);
  EXPECT_FALSE(plain.has_codes());
  const EntryForm codes{KvFormat::kFp8, DType::kBF16, 512, 64};
  EXPECT_EQ(codes.coded(), 448);
  EXPECT_EQ(codes.groups(), 7);
  EXPECT_EQ(codes.tail_at(), 448);
  EXPECT_EQ(codes.scales_at(), 448 + 128);
  EXPECT_EQ(codes.bytes(), 592);
  const EntryForm integers{KvFormat::kInt8, DType::kBF16, 512, 64};
  EXPECT_EQ(integers.scales_at(), 448 + 128);
  EXPECT_EQ(integers.bytes(), 608);
}

TEST(CompressedEntry, PartsOfOddSizesAreAligned) {
  const EntryForm codes{KvFormat::kFp8, DType::kF32, 80, 8};
  EXPECT_EQ(codes.groups(), 2) << "the second has 8 codes";
  EXPECT_EQ(codes.tail_at(), 80) << "72 codes before";
  EXPECT_EQ(codes.scales_at(), 112);
  EXPECT_EQ(codes.bytes(), 128);
}

TEST(CompressedEntry, PowersAreTheLowestAtWhichCodesReachThatFar) {
  for (const float highest : {1e-4f, 0.3f, 1.0f, 447.0f, 448.0f, 449.0f, 3e4f}) {
    const float scale = coded_scale(coded_power(highest));
    EXPECT_EQ(std::exp2(std::round(std::log2(scale))), scale) << highest;
    EXPECT_LE(highest, kMaxE4m3 * scale) << highest;
    EXPECT_GT(highest, kMaxE4m3 * scale / 2) << highest;
  }
  EXPECT_EQ(coded_power(448.0f), 127);
  EXPECT_EQ(coded_power(449.0f), 128);
  EXPECT_EQ(coded_power(0.0f), coded_power(1e-4f));
  EXPECT_TRUE(std::isinf(coded_scale(coded_power(std::numeric_limits<float>::infinity()))));
}

}  // namespace
}  // namespace foretoken
