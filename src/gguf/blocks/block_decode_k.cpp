#include "gguf/blocks/block_decode.h"

namespace foretoken {

ScaleAndMin scale_and_min(const std::byte* packed, int index) {
  if (index < 4)
    return {byte_number_at(packed + index) & 63, byte_number_at(packed + index + 4) & 63};
  const int low = byte_number_at(packed + index + 4);
  return {(low & 15) | (byte_number_at(packed + index - 4) >> 6) << 4,
          (low >> 4) | (byte_number_at(packed + index) >> 6) << 4};
}

int q3_k_scale(const std::byte* packed, int index) {
  const int low = byte_number_at(packed + index % 8) >> (index / 8 * 4) & 15;
  const int high = byte_number_at(packed + 8 + index % 4) >> (index / 4 * 2) & 3;
  return (low | high << 4) - 32;
}

// The lowest power of three stands in the highest digit, so that multiplying brings the others up.
void tq1_0_digits(const std::byte* block, uint8_t (&digits)[256]) {
  constexpr uint8_t kPowers[] = {1, 3, 9, 27, 81};
  uint8_t* to = digits;
  const auto take = [&](int first, int bytes, int num_digits) {
    for (int digit = 0; digit < num_digits; ++digit) {
      for (int i = 0; i < bytes; ++i) {
        const auto moved = static_cast<uint8_t>(byte_number_at(block + first + i) * kPowers[digit]);
        *to++ = static_cast<uint8_t>(moved * 3 >> 8);
      }
    }
  };
  take(0, 32, 5);
  take(32, 16, 5);
  take(48, 4, 4);
}

// 16 bytes of scale and minimum of 16 elements, 64 of 2 bits each, scales of both.
void decode_q2_k(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 84) {
    const float scale = half_number_at(blocks + 80), min = half_number_at(blocks + 82);
    for (int i = 0; i < 256; ++i) {
      const int pair = byte_number_at(blocks + i / 16);
      const int code =
          byte_number_at(blocks + 16 + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3;
      const float group_scale = scale * static_cast<float>(pair & 15);
      *out++ = group_scale * static_cast<float>(code) - min * static_cast<float>(pair >> 4);
    }
  }
}

// 32 bytes of the third bits, 64 of 2 bits each, 12 of scales, their scale.
void decode_q3_k(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 110) {
    const float scale = half_number_at(blocks + 108);
    for (int i = 0; i < 256; ++i) {
      const int low = byte_number_at(blocks + 32 + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3;
      const int high = byte_number_at(blocks + i % 32) >> (i / 32) & 1;
      const float group_scale = scale * static_cast<float>(q3_k_scale(blocks + 96, i / 16));
      *out++ = group_scale * static_cast<float>((low | high << 2) - 4);
    }
  }
}

// Scale of the scales, scale of the minima, 12 bytes of both, 256 values of 4 bits in groups of 32.
void decode_q4_k(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 144) {
    const float scale = half_number_at(blocks);
    const float min = half_number_at(blocks + 2);
    for (int group = 0; group < 8; ++group) {
      const ScaleAndMin packed = scale_and_min(blocks + 4, group);
      const float group_scale = scale * static_cast<float>(packed.scale);
      const float group_min = min * static_cast<float>(packed.min);
      const std::byte* values = blocks + 16 + group / 2 * 32;
      for (int i = 0; i < 32; ++i) {
        const int pair = byte_number_at(values + i);
        const int value = group % 2 == 0 ? pair & 15 : pair >> 4;
        *out++ = group_scale * static_cast<float>(value) - group_min;
      }
    }
  }
}

// As Q4_K, with 32 bytes of the fifth bits in front of the values.
void decode_q5_k(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 176) {
    const float scale = half_number_at(blocks);
    const float min = half_number_at(blocks + 2);
    for (int group = 0; group < 8; ++group) {
      const ScaleAndMin packed = scale_and_min(blocks + 4, group);
      const float group_scale = scale * static_cast<float>(packed.scale);
      const float group_min = min * static_cast<float>(packed.min);
      for (int i = 0; i < 32; ++i) {
        const int pair = byte_number_at(blocks + 48 + group / 2 * 32 + i);
        const int high = byte_number_at(blocks + 16 + i) >> group & 1;
        const int value = (group % 2 == 0 ? pair & 15 : pair >> 4) | high << 4;
        *out++ = group_scale * static_cast<float>(value) - group_min;
      }
    }
  }
}

// 128 bytes of low 4 bits, 64 of high 2 bits, 16 signed scales of 16 values each, their scale.
void decode_q6_k(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 210) {
    const float scale = half_number_at(blocks + 208);
    for (int half = 0; half < 2; ++half) {
      const std::byte* low = blocks + half * 64;
      const std::byte* high = blocks + 128 + half * 32;
      const std::byte* scales = blocks + 192 + half * 8;
      for (int i = 0; i < 128; ++i) {
        const int quarter = i / 32, lane = i % 32;
        const int pair = byte_number_at(low + lane + quarter % 2 * 32);
        const int low_bits = quarter < 2 ? pair & 15 : pair >> 4;
        const int high_bits = (byte_number_at(high + lane) >> (2 * quarter)) & 3;
        const int value = (low_bits | high_bits << 4) - 32;
        *out++ = scale * static_cast<float>(signed_number_at(scales + i / 16)) *
                 static_cast<float>(value);
      }
    }
  }
}

// A float, 256 signed bytes, sums of them.
void decode_q8_k(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 292) {
    const auto scale = number_at<float>(blocks);
    for (int i = 0; i < 256; ++i)
      *out++ = scale * static_cast<float>(signed_number_at(blocks + 4 + i));
  }
}

// Five digits to the base of three in a byte, four in the last bytes; scale.
void decode_tq1_0(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 54) {
    const float scale = half_number_at(blocks + 52);
    uint8_t digits[256];
    tq1_0_digits(blocks, digits);
    for (const uint8_t digit : digits) *out++ = scale * static_cast<float>(int{digit} - 1);
  }
}

// Two bits each, less one; scale.
void decode_tq2_0(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 66) {
    const float scale = half_number_at(blocks + 64);
    for (int i = 0; i < 256; ++i) {
      const int code = byte_number_at(blocks + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3;
      *out++ = scale * static_cast<float>(code - 1);
    }
  }
}

}  // namespace foretoken
