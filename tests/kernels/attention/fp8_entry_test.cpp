#include "kernels/attention/cpu/fp8_entry.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "kernels/attention/cpu/attention_lanes.h"
#include "support/random_data.h"

namespace foretoken::cpu {
namespace {

std::vector<uint8_t> all_codes() {
  std::vector<uint8_t> codes;
  for (int code = 0; code < 256; ++code) codes.push_back(static_cast<uint8_t>(code));
  return codes;
}

TEST(Fp8Entry, EveryWayOfWideningIsExact) {
  const std::vector<uint8_t> codes = all_codes();
  std::array<float, 256> floats;
  std::array<uint16_t, 256> halves;
  widen_codes(codes.data(), 256, 1.0f, floats.data());
  widen_codes(codes.data(), 256, 1.0f, halves.data());
  std::vector<float> ways[256];
  for (size_t code = 0; code < 256; ++code) {
    ways[code] = {floats[code], bf16_to_float(halves[code])};
  }
  for (const AttentionLanes& lanes : attention_lanes()) {
    lanes.widen_e4m3(codes.data(), 256, halves.data());
    for (size_t code = 0; code < 256; ++code) ways[code].push_back(bf16_to_float(halves[code]));
  }
  for (size_t code = 0; code < 256; ++code) {
    const float want = e4m3_value(static_cast<uint8_t>(code));
    for (const float got : ways[code]) {
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want) << code;
      EXPECT_EQ(std::signbit(got), std::signbit(want)) << code;
    }
  }
}

// Sixteen at once and one by one.
TEST(Fp8Entry, WhereAVectorEndsChangesNothing) {
  const std::vector<uint8_t> codes = all_codes();
  std::vector<uint16_t> whole(256), parts(256);
  widen_codes(codes.data(), 256, 0.37f, whole.data());
  for (int i = 0; i < 256; i += 5) {
    widen_codes(codes.data() + i, std::min(5, 256 - i), 0.37f, parts.data() + i);
  }
  EXPECT_EQ(whole, parts);
}

TEST(Fp8Entry, CodesAreOfTheQuotientAndSaturate) {
  const std::vector<float> x = {3.0f, -0.25f, 1000.0f, -1e30f, 0.0f, std::nanf("")};
  std::vector<uint8_t> codes(x.size());
  store_fp8_codes(x.data(), static_cast<int>(x.size()), 0.5f, codes.data());
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(codes[i], e4m3_code(x[i] / 0.5f)) << i;
  EXPECT_EQ(e4m3_value(codes[2]), kMaxE4m3);
  EXPECT_EQ(e4m3_value(codes[3]), -kMaxE4m3);
  EXPECT_TRUE(std::isnan(e4m3_value(codes[5])));
}

}  // namespace
}  // namespace foretoken::cpu
