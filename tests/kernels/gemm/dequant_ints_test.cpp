#include "kernels/gemm/cuda/dequant_ints.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "base/float8.h"
#include "base/half.h"
#include "base/quantized_rows.h"
#include "kernels/gemm/host_pairs.h"

namespace foretoken::cuda {
namespace {

uint16_t half_to_bf16(uint16_t half) {
  return static_cast<uint16_t>(HostPairs::rounded(half_to_float(half)));
}

// The scales of a unit whose rows and groups all have these.
template <int Group, bool HasZeros, int Bits = 4>
IntBase base_with(uint16_t half, uint8_t zero, int row, int group) {
  using Scales = IntScales<Bits, Group, HasZeros ? IntOffset::kZeros : IntOffset::kMiddle>;
  alignas(16) std::array<uint8_t, Scales::kBytes> unit{};
  const uint16_t scale = int_scale_bits(half_to_bf16(half), Scales::kPlace);
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
  using Scales = IntScales<8, 32, IntOffset::kMiddle>;
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
  EXPECT_EQ((IntScales<4, 32, IntOffset::kMiddle>::kBytes), 64);
  EXPECT_EQ((IntScales<4, 128, IntOffset::kMiddle>::kBytes), 16);
  EXPECT_EQ((IntScales<4, 32, IntOffset::kZeros>::kBytes), 96);
  EXPECT_EQ((IntScales<4, 128, IntOffset::kZeros>::kBytes), 32);
  EXPECT_EQ((IntScales<4, 32, IntOffset::kMinimum>::kBytes), 128);
  EXPECT_EQ((IntScales<2, 16, IntOffset::kMinimum>::kBytes), 256);
  EXPECT_EQ((IntScales<6, 16, IntOffset::kMiddle>::kBytes), 128);
}

// Codes of a lane's row in a unit, with a scale for each group and what is taken from its codes.
// value(code): what a code stands for, before that.
template <class Codes, int Bits, int Group, IntOffset Offset, class Value>
void expect_widened(int code_bits, const Value& value) {
  using Scales = IntScales<Bits, Group, Offset>;
  constexpr int kRow = 5;
  std::mt19937 random(Bits * 100 + Group);
  alignas(16) std::array<uint8_t, Scales::kBytes> unit{};
  std::array<double, Scales::kBases> scales{}, minima{};
  for (int i = 0; i < Scales::kBases; ++i) {
    const auto draw = [&] {
      return std::ldexp(double(random() % 4096) - 2048, int(random() % 20) - 30);
    };
    const uint32_t scale = HostPairs::rounded(draw());
    scales[size_t(i)] = HostPairs::value(scale);
    const uint16_t bits = int_scale_bits(uint16_t(scale), Scales::kPlace);
    std::memcpy(unit.data() + Scales::scale_place(kRow, i), &bits, sizeof bits);
    if constexpr (Offset == IntOffset::kMinimum) {
      const auto less = uint16_t(HostPairs::rounded(-draw() / kSmallRowScale));
      minima[size_t(i)] = -HostPairs::value(less) * kSmallRowScale;
      std::memcpy(unit.data() + Scales::minimum_place(kRow, i), &less, sizeof less);
    }
  }
  uint32_t words[Codes::kWords] = {};
  std::array<uint32_t, 32> codes{};  // pair q of 16: 2 q and 2 q + 1
  for (int i = 0; i < 32; ++i) {
    codes[size_t(i)] = random() % (1u << code_bits);
    for (int word = 0; word < Codes::kWords; ++word) {
      if constexpr (Codes::kSpreads) {
        words[word] |= Codes::place(codes[size_t(i)], i / 2, word) << (i % 2 * 16);
      } else if (word == i / 4 * Codes::kWords / 8) {
        words[word] |= Codes::place(codes[size_t(i)], i / 4, i / 2 % 2, i % 2);
      }
    }
  }
  Scales own;
  own.load(unit.data(), kRow);
  for (int step = 0; step < 8; ++step) {
    const int group = step * Scales::kBases / 8;
    uint32_t b[2];
    Codes::template widen_by<HostPairs>(words, step, own.template base_of<HostPairs>(group), b);
    for (int i = 0; i < 4; ++i) {
      const double of_code = value(codes[size_t(step * 4 + i)]) * scales[size_t(group)];
      const double want = HostPairs::value(HostPairs::rounded(of_code - minima[size_t(group)]));
      ASSERT_EQ(HostPairs::value(b[i / 2] >> (i % 2 * 16)) * kSmallRowScale, want)
          << "step " << step << " code " << i;
    }
  }
}

TEST(DequantInts, CodesOfTwoToSixBitsHaveOneRounding) {
  const auto whole = [](uint32_t code) { return double(code); };
  const auto less = [](int middle) {
    return [middle](uint32_t code) { return double(code) - middle; };
  };
  expect_widened<SpreadCodes<2>, 2, 16, IntOffset::kMinimum>(2, whole);
  expect_widened<SpreadCodes<3>, 3, 16, IntOffset::kMiddle>(3, less(4));
  expect_widened<Int4Codes<false>, 4, 32, IntOffset::kMinimum>(4, whole);
  expect_widened<SpreadCodes<5>, 5, 32, IntOffset::kMiddle>(5, less(16));
  expect_widened<SpreadCodes<5>, 5, 32, IntOffset::kMinimum>(5, whole);
  expect_widened<SpreadCodes<6>, 6, 16, IntOffset::kMiddle>(6, less(32));
}

TEST(DequantInts, CodesOfATableHaveOneRounding) {
  const int8_t* steps = code_values(CodeTable::kIq4);
  expect_widened<Iq4Codes, 8, 32, IntOffset::kMiddle>(
      4, [&](uint32_t code) { return double(steps[code]); });
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

// An infinite half is the next power of two behind the largest one, and so is a larger scale.
TEST(DequantInts, LargeScalesStayFinite) {
  EXPECT_EQ(int_scale_bits(0x4800, 0), int_scale_bits(0x4780, 0));
  EXPECT_EQ(int_scale_bits(0x7f80, 4), int_scale_bits(0x4780, 4));
  EXPECT_EQ(int_scale_bits(0xff80, 4), int_scale_bits(0xc780, 4));
}

}  // namespace
}  // namespace foretoken::cuda
