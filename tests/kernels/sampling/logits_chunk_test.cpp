#include "kernels/sampling/cpu/logits_chunk.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace foretoken::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(LogitsChunk, IsFilledUpWithMinusInf) {
  std::vector<float> logits(700);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i);
  LogitsChunk chunk;
  load_chunk(logits.data(), 700, 512, chunk);
  EXPECT_EQ(chunk.begin, 512);
  EXPECT_EQ(chunk.logits[0], 512.0f);
  EXPECT_EQ(chunk.logits[187], 699.0f);
  for (int i = 188; i < kLogitsChunk; ++i) EXPECT_EQ(chunk.logits[i], -kInf);
}

TEST(LogitsChunk, MaximumAndInvalidLogits) {
  for (const int at : {0, 7, 300, 511}) {
    std::vector<float> logits(512, -4.0f);
    logits[static_cast<size_t>(at)] = -1.0f;
    LogitsChunk chunk;
    load_chunk(logits.data(), 512, 0, chunk);
    uint32_t invalid = 0;
    EXPECT_EQ(chunk_max(chunk, invalid), -1.0f);
    EXPECT_EQ(invalid, 0u);
    for (const float bad : {kInf, std::numeric_limits<float>::quiet_NaN()}) {
      chunk.logits[at] = bad;
      invalid = 0;
      chunk_max(chunk, invalid);
      EXPECT_NE(invalid, 0u) << at;
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu
