#include "gguf/blocks/block_scales.h"

#include <cmath>

#include "gguf/blocks/block_decode.h"

namespace foretoken {
namespace {

// Where blocks of a type have their halves; -1: nowhere.
struct HalvesOfType {
  uint32_t number;
  int first;
  int second = -1;
};
constexpr HalvesOfType kHalves[] = {
    {2, 0},     {3, 0, 2},  {6, 0},    {7, 0, 2}, {8, 0},   {9, 0},  {10, 80, 82}, {11, 108},
    {12, 0, 2}, {13, 0, 2}, {14, 208}, {16, 0},   {17, 0},  {18, 0}, {19, 0},      {20, 0},
    {21, 0},    {22, 0},    {23, 0},   {34, 52},  {35, 64}, {41, 0}, {42, 0},
};
constexpr uint32_t kQ8K = 15, kIq1M = 29, kMxfp4Number = 39;

constexpr bool is_unbounded_half(uint32_t bits) { return (bits & 0x7c00u) == 0x7c00u; }

// Without branches in the loop, as next to all blocks are sound.
template <class IsUnbounded>
int64_t first_block(const BlockType& type, const std::byte* blocks, int64_t count,
                    IsUnbounded is_unbounded) {
  bool found = false;
  for (int64_t i = 0; i < count; ++i) found |= is_unbounded(blocks + i * type.bytes);
  if (!found) return -1;
  int64_t i = 0;
  while (!is_unbounded(blocks + i * type.bytes)) ++i;
  return i;
}

}  // namespace

int64_t first_unbounded_block(const BlockType& type, const std::byte* blocks, int64_t count) {
  for (const auto& [number, first, second] : kHalves) {
    if (number != type.number) continue;
    const int other = second >= 0 ? second : first;
    return first_block(type, blocks, count, [first, other](const std::byte* block) {
      return is_unbounded_half(number_at<uint16_t>(block + first)) |
             is_unbounded_half(number_at<uint16_t>(block + other));
    });
  }
  if (type.number == kQ8K) {
    return first_block(type, blocks, count, [](const std::byte* block) {
      return !std::isfinite(number_at<float>(block));
    });
  }
  if (type.number == kIq1M) {
    return first_block(type, blocks, count, [](const std::byte* block) {
      return is_unbounded_half(iq1_m_scale(block));
    });
  }
  if (type.number != kMxfp4Number) return -1;
  return first_block(type, blocks, count,
                     [](const std::byte* block) { return byte_number_at(block) == 255; });
}

}  // namespace foretoken
