#include "base/quantized_rows.h"
#include "gguf/blocks/block_decode.h"
#include "gguf/blocks/iq_grids.h"

namespace foretoken {
namespace {

// A point of a grid with signs, times a scale. The signs begin at the lowest bit.
template <int kNeighbours>
float* put_point(const int8_t (&point)[kNeighbours], float scale, uint32_t signs, float* out) {
  for (int i = 0; i < kNeighbours; ++i) {
    const float magnitude = scale * static_cast<float>(point[i]);
    *out++ = (signs >> i & 1) != 0 ? -magnitude : magnitude;
  }
  return out;
}

// Scale number `index` of those that take four bits each, the lower ones first.
float nibble_at(const std::byte* packed, int index) {
  return static_cast<float>(byte_number_at(packed + index / 2) >> (index % 2 * 4) & 15);
}

constexpr float kIq1Shift = 0.125F;

float* put_shifted(const int8_t (&point)[8], float scale, bool down, float* out) {
  for (const int8_t value : point) {
    *out++ = scale * (static_cast<float>(value) + (down ? -kIq1Shift : kIq1Shift));
  }
  return out;
}

}  // namespace

int iq4_xs_scale(const std::byte* block, int group) {
  const int low = byte_number_at(block + 4 + group / 2) >> (group % 2 * 4) & 15;
  const int high = number_at<uint16_t>(block + 2) >> (2 * group) & 3;
  return (low | high << 4) - 32;
}

// Scale, 32 low bytes of points, eight words: upper bits of four points, scale, direction of shift.
void decode_iq1_s(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 50) {
    const float scale = half_number_at(blocks);
    for (int i = 0; i < 32; ++i) {
      const int word = number_at<uint16_t>(blocks + 34 + i / 4 * 2);
      const int index = byte_number_at(blocks + 2 + i) | (word >> (i % 4 * 3) & 7) << 8;
      const float group_scale = scale * static_cast<float>(2 * (word >> 12 & 7) + 1);
      out = put_shifted(iq1_grid()[index], group_scale, (word & 0x8000) != 0, out);
    }
  }
}

// 32 low bytes of points, half bytes of their upper bits and shifts, four words of four scales of
// three bits each, in whose upper bits the scale of all is spread.
void decode_iq1_m(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 56) {
    const float scale = half_to_float(iq1_m_scale(blocks));
    for (int i = 0; i < 32; ++i) {
      const int half_byte = byte_number_at(blocks + 32 + i / 2) >> (i % 2 * 4) & 15;
      const int index = byte_number_at(blocks + i) | (half_byte & 7) << 8;
      const int word = number_at<uint16_t>(blocks + 48 + i / 8 * 2);
      const int multiple = 2 * (word >> (i % 8 / 2 * 3) & 7) + 1;
      out = put_shifted(iq1_grid()[index], scale * static_cast<float>(multiple),
                        (half_byte & 8) != 0, out);
    }
  }
}

// Scale; for 32 elements four bytes of points, then four times seven signs and four bits of scale.
void decode_iq2_xxs(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 66) {
    const float scale = half_number_at(blocks);
    for (int i = 0; i < 32; ++i) {
      const std::byte* group = blocks + 2 + i / 4 * 8;
      const auto word = number_at<uint32_t>(group + 4);
      const float group_scale = scale * (0.5F + static_cast<float>(word >> 28)) * 0.25F;
      out = put_point(iq2_xxs_grid()[byte_number_at(group + i % 4)], group_scale,
                      iq_signs(word >> (i % 4 * 7)), out);
    }
  }
}

// Scale; words of nine bits of a point and seven signs; scales of sixteen elements.
void decode_iq2_xs(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 74) {
    const float scale = half_number_at(blocks);
    for (int i = 0; i < 32; ++i) {
      const uint32_t word = number_at<uint16_t>(blocks + 2 + 2 * i);
      const float group_scale = scale * (0.5F + nibble_at(blocks + 66, i / 2)) * 0.25F;
      out = put_point(iq2_xs_grid()[word & 511], group_scale, iq_signs(word >> 9), out);
    }
  }
}

// Scale; low bytes of points; signs; upper bits of points; scales of sixteen elements.
void decode_iq2_s(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 82) {
    const float scale = half_number_at(blocks);
    for (int i = 0; i < 32; ++i) {
      const int high = byte_number_at(blocks + 66 + i / 4) >> (i % 4 * 2) & 3;
      const int index = byte_number_at(blocks + 2 + i) | high << 8;
      const float group_scale = scale * (0.5F + nibble_at(blocks + 74, i / 2)) * 0.25F;
      out = put_point(iq2_s_grid()[index], group_scale,
                      static_cast<uint32_t>(byte_number_at(blocks + 34 + i)), out);
    }
  }
}

// Scale; bytes of points of four; for 32 elements four times seven signs and four bits of scale.
void decode_iq3_xxs(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 98) {
    const float scale = half_number_at(blocks);
    for (int i = 0; i < 64; ++i) {
      const auto word = number_at<uint32_t>(blocks + 66 + i / 8 * 4);
      const float group_scale = scale * (0.5F + static_cast<float>(word >> 28)) * 0.5F;
      const uint32_t signs = iq_signs(word >> (i % 8 / 2 * 7));
      out = put_point(iq3_xxs_grid()[byte_number_at(blocks + 2 + i)], group_scale,
                      signs >> (i % 2 * 4), out);
    }
  }
}

// Scale; low bytes of points of four; their ninth bits; signs; scales of 32 elements.
void decode_iq3_s(const std::byte* blocks, int64_t count, float* out) {
  for (; count > 0; --count, blocks += 110) {
    const float scale = half_number_at(blocks);
    for (int i = 0; i < 64; ++i) {
      const int high = byte_number_at(blocks + 66 + i / 8) >> (i % 8) & 1;
      const int index = byte_number_at(blocks + 2 + i) | high << 8;
      const float group_scale = scale * (1 + 2 * nibble_at(blocks + 106, i / 8));
      const auto signs = static_cast<uint32_t>(byte_number_at(blocks + 74 + i / 2));
      out = put_point(iq3_s_grid()[index], group_scale, signs >> (i % 2 * 4), out);
    }
  }
}

// Scale, then 32 codes of a table: the low halves of 16 bytes, then the high ones.
void decode_iq4_nl(const std::byte* blocks, int64_t count, float* out) {
  const int8_t* values = code_values(CodeTable::kIq4);
  for (; count > 0; --count, blocks += 18, out += 32) {
    const float scale = half_number_at(blocks);
    for (int i = 0; i < 16; ++i) {
      const int pair = byte_number_at(blocks + 2 + i);
      out[i] = scale * static_cast<float>(values[pair & 15]);
      out[i + 16] = scale * static_cast<float>(values[pair >> 4]);
    }
  }
}

// Scale, upper and lower bits of eight scales, then 32 codes of each as in IQ4_NL.
void decode_iq4_xs(const std::byte* blocks, int64_t count, float* out) {
  const int8_t* values = code_values(CodeTable::kIq4);
  for (; count > 0; --count, blocks += 136) {
    const float scale = half_number_at(blocks);
    for (int group = 0; group < 8; ++group, out += 32) {
      const float group_scale = scale * static_cast<float>(iq4_xs_scale(blocks, group));
      for (int i = 0; i < 16; ++i) {
        const int pair = byte_number_at(blocks + 8 + 16 * group + i);
        out[i] = group_scale * static_cast<float>(values[pair & 15]);
        out[i + 16] = group_scale * static_cast<float>(values[pair >> 4]);
      }
    }
  }
}

}  // namespace foretoken
