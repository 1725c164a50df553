#include "kernels/sampling/cpu/sample_row.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken::cpu {
namespace {

// tests/kernels/sampling/sample_test.cpp holds the rules; here are the seams between pieces of the
// row.
TEST(SampleRow, FindsTheMaximumAcrossPieces) {
  SlotParams params{};
  params.top_p = 1;
  for (const int vocab : {1, 511, 512, 513, 2000}) {
    for (const int at : {0, vocab / 2, vocab - 1}) {
      std::vector<float> logits(static_cast<size_t>(vocab), -2.0f);
      logits[static_cast<size_t>(at)] = 30.0f;
      for (const float temperature : {0.0f, 0.5f}) {
        params.temperature = temperature;
        EXPECT_EQ(sample_row({logits.data(), &params, vocab, 3, false}), at);
      }
    }
  }
}

TEST(SampleRow, MasksOnlyWhenAsked) {
  SlotParams params{};
  params.top_p = 1;
  params.num_stop_ids = 1;
  params.stop_ids[0] = 600;
  std::vector<float> logits(700, 0.0f);
  logits[600] = 5.0f;
  logits[601] = 4.0f;
  EXPECT_EQ(sample_row({logits.data(), &params, 700, 1, false}), 600);
  EXPECT_EQ(sample_row({logits.data(), &params, 700, 1, true}), 601);
}

}  // namespace
}  // namespace foretoken::cpu
