#include "base/philox.h"

#include <gtest/gtest.h>

#include <set>

// Known answers of philox4x32 with ten rounds from Random123's kat_vectors.

namespace foretoken {
namespace {

void expect_words(const Philox4& got, const uint32_t (&want)[4]) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(got.v[i], want[i]) << "word " << i;
}

TEST(Philox, KnownAnswerOfZeros) {
  expect_words(philox4x32(0, 0, 0, 0, 0), {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
}

TEST(Philox, KnownAnswerOfOnes) {
  expect_words(philox4x32(~0u, ~0u, ~0u, ~0u, ~0ull),
               {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
}

// Digits of pi; the only vector whose counter and key words all differ.
TEST(Philox, KnownAnswerOfPi) {
  expect_words(
      philox4x32(0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u, 0x299f31d0a4093822ull),
      {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});
}

TEST(Philox, EveryCounterWordAndBothKeyHalvesMatter) {
  std::set<uint64_t> seen;
  const auto add = [&](const Philox4& words) {
    seen.insert(static_cast<uint64_t>(words.v[0]) << 32 | words.v[1]);
  };
  add(philox4x32(0, 0, 0, 0, 0));
  add(philox4x32(1, 0, 0, 0, 0));
  add(philox4x32(0, 1, 0, 0, 0));
  add(philox4x32(0, 0, 1, 0, 0));
  add(philox4x32(0, 0, 0, 1, 0));
  add(philox4x32(0, 0, 0, 0, 1));
  add(philox4x32(0, 0, 0, 0, 1ull << 32));
  EXPECT_EQ(seen.size(), 7u);
}

}  // namespace
}  // namespace foretoken
