#include "kernels/gemm/cuda/dequant_ints.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "base/float8.h"
#include "base/half.h"
#include "kernels/gemm/host_pairs.h"

namespace foretoken::cuda {
namespace {

uint16_t half_to_bf16(uint16_t half) {
  return static_cast<uint16_t>(HostPairs::rounded(half_to_float(half)));
}

// The scales of a unit whose rows and groups all have these.
template <int Group, bool HasZeros, int Bits = 4>
IntBase base_with(uint16_t half, uint8_t zero, int row, int group) {
  using Scales = IntScales<Bits, Group, HasZeros>;
  alignas(16) std::array<uint8_t, Scales::kBytes> unit{};
  const uint16_t scale = int_scale_bits(half_to_bf16(half));
  std::memcpy(unit.data() + Scales::scale_place(row, group), &scale, sizeof scale);
  if (HasZeros) unit[size_t(Scales::zero_place(row, group))] = zero;
  Scales scales;
  scales.load(unit.data(), row);
  return scales.template base_of<HostPairs>(group);
}

template <bool HasZeros>
void expect_values(const IntBase& base, uint16_t half, int zero) {
  const double scale = HostPairs::value(half_to_bf16(half));
  for (uint32_t code = 0; code < 16; ++code) {
    std::array<std::array<uint32_t, 2>, 2> pairs{};  // of the steps of a word
    uint32_t words[4] = {};
    for (int i = 0; i < 8; ++i) {
      words[0] |=
          Int4Codes<HasZeros>::place(i % 2 == 0 ? code : 15 - code, i / 4, i / 2 % 2, i % 2);
    }
    for (int step = 0; step < 2; ++step) {
      uint32_t b[2];
      Int4Codes<HasZeros>::template widen_by<HostPairs>(words, step, base, b);
      pairs[size_t(step)] = {b[0], b[1]};
    }
    for (const auto& step : pairs) {
      for (const uint32_t pair : step) {
        const double low = HostPairs::value(pair), high = HostPairs::value(pair >> 16);
        const auto want = [&](uint32_t c) {
          return HostPairs::value(HostPairs::rounded(scale * (int(c) - zero)));
        };
        ASSERT_EQ(low * kSmallRowScale, want(code)) << code << " minus " << zero << ", " << half;
        ASSERT_EQ(high * kSmallRowScale, want(15 - code)) << code << " minus " << zero;
      }
    }
  }
}

// Of halves of either sign, subnormal ones and zero.
TEST(DequantInts, CodesMinusEightHaveOneRounding) {
  for (uint32_t half = 0; half < 0x10000; half += 37) {
    if ((half & 0x7c00u) == 0x7c00u) continue;
    expect_values<false>(base_with<128, false>(uint16_t(half), 0, 3, 0), uint16_t(half), 8);
  }
  expect_values<false>(base_with<128, false>(0x7bff, 0, 0, 0), 0x7bff, 8);
  expect_values<false>(base_with<128, false>(0x8000, 0, 0, 0), 0x8000, 8);
}

TEST(DequantInts, CodesMinusAZeroHaveOneRounding) {
  for (const uint8_t zero : {0, 1, 7, 8, 15, 16, 200}) {
    for (uint32_t half = 0; half < 0x10000; half += 211) {
      if ((half & 0x7c00u) == 0x7c00u) continue;
      expect_values<true>(base_with<128, true>(uint16_t(half), zero, 6, 0), uint16_t(half), zero);
    }
  }
}

TEST(DequantInts, CodesOfEightBitsHaveOneRounding) {
  using Scales = IntScales<8, 32, false>;
  for (uint32_t half = 0; half < 0x10000; half += 1021) {
    if ((half & 0x7c00u) == 0x7c00u) continue;
    const IntBase base = base_with<32, false, 8>(uint16_t(half), 0, 5, 2);
    const double scale = HostPairs::value(half_to_bf16(uint16_t(half)));
    for (uint32_t code = 0; code < 256; code += 2) {
      uint32_t words[8] = {}, b[2];
      for (int i = 0; i < 4; ++i) {
        words[3] |= Int8Codes::place((code + uint32_t(i) * 61) % 256, 3, i / 2, i % 2);
      }
      Int8Codes::widen_by<HostPairs>(words, 3, base, b);
      for (int i = 0; i < 4; ++i) {
        const int own = int((code + uint32_t(i) * 61) % 256) - 128;
        ASSERT_EQ(HostPairs::value(b[i / 2] >> (i % 2 * 16)) * kSmallRowScale,
                  HostPairs::value(HostPairs::rounded(scale * own)))
            << own << " times " << half;
      }
    }
  }
  EXPECT_EQ(Scales::kBytes, 64);
}

// Every row and group of a unit finds its own scale and zero.
TEST(DequantInts, ScalesLieByRowAndGroup) {
  for (int row = 0; row < 8; ++row) {
    for (int group = 0; group < 4; ++group) {
      expect_values<false>(base_with<32, false>(0x2e66, 0, row, group), 0x2e66, 8);
      expect_values<true>(base_with<32, true>(0xae66, 5, row, group), 0xae66, 5);
    }
  }
  EXPECT_EQ((IntScales<4, 32, false>::kBytes), 64);
  EXPECT_EQ((IntScales<4, 128, false>::kBytes), 16);
  EXPECT_EQ((IntScales<4, 32, true>::kBytes), 96);
  EXPECT_EQ((IntScales<4, 128, true>::kBytes), 32);
}

// Of NVFP4: 2^102 times the scale, beside codes that have its sign.
TEST(DequantInts, ScalesOfNvfp4AreNormal) {
  for (int e4m3 = 0; e4m3 < 256; ++e4m3) {
    const auto own = uint8_t(e4m3);
    if ((own & 127) == 127) continue;  // no number
    const float scale = e4m3_value(own);
    EXPECT_EQ(nvfp4_code(5, own), scale == 0 ? 0u : scale < 0 ? 13u : 5u) << e4m3;
    if (scale == 0) continue;
    const uint32_t base = nvfp4_scale_bits(own) * 0x10001u * 16 + kNvfp4Base;
    EXPECT_EQ(HostPairs::value(base), std::ldexp(std::abs(double(scale)), 102)) << e4m3;
    EXPECT_EQ(base >> 16, base & 0xffffu);
  }
}

// An infinite half is the next power of two behind the largest one.
TEST(DequantInts, InfiniteScalesStayFinite) {
  EXPECT_EQ(int_scale_bits(0x7f80), int_scale_bits(0x4780));
  EXPECT_EQ(int_scale_bits(0xff80), int_scale_bits(0xc780));
}

}  // namespace
}  // namespace foretoken::cuda
