#include "model/weights/random_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/float8.h"
#include "base/half.h"

namespace foretoken {
namespace {

// SplitMix64.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::byte* put_halves(std::byte* to, float value, int64_t count) {
  const uint16_t half = half_from_float(value);
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + 2 * i, &half, sizeof half);
  return to + 2 * count;
}

std::byte* put_bytes(std::byte* to, int value, int64_t count) {
  std::fill_n(to, count, static_cast<std::byte>(value));
  return to + count;
}

// Halves that are drawn evenly from 4096 numbers around zero.
void random_halves(uint64_t seed, int64_t k, float deviation, std::byte* to) {
  constexpr float kNumbers = 4096;
  const float step = deviation / (kNumbers / std::sqrt(12.0f));
  for (int64_t i = 0; i < k; ++i) {
    const uint64_t number = mixed(seed + static_cast<uint64_t>(i)) >> 52;
    put_halves(to + 2 * i, (static_cast<float>(number) - (kNumbers - 1) / 2) * step, 1);
  }
}

// Codes of E4M3 for bytes that are drawn evenly: their numbers are spread evenly, too.
std::array<uint8_t, 256> even_floats() {
  std::array<uint8_t, 256> codes;
  for (int i = 0; i < 256; ++i) {
    const float place = (static_cast<float>(i) - 127.5f) / 127.5f;
    codes[static_cast<size_t>(i)] = e4m3_code(place * kMaxE4m3);
  }
  return codes;
}

void put_floats(std::byte* to, float value, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * static_cast<int64_t>(sizeof value), &value, sizeof value);
  }
}

// Of what codes stand for, as they are drawn.
float code_deviation(const QuantForm& form) {
  switch (form.table) {
    case CodeTable::kNone:
      break;
    case CodeTable::kIq4:
      return 67.2f;
    case CodeTable::kE2m1:
      return 5.85f;
    case CodeTable::kE4m3:
      return kMaxE4m3 / std::sqrt(3.0f);
  }
  return static_cast<float>(1 << form.bits) / std::sqrt(12.0f);
}

// What scales the codes of a row of k, behind them; deviation: of the row's values.
void put_scales(const QuantForm& form, int64_t k, float deviation, std::byte* to) {
  constexpr int kGroupScale = 32, kSignedGroupScale = 64;  // of the bytes that scale a group
  const int num_codes = 1 << form.bits;
  float step = deviation / code_deviation(form);
  if (form.powers) step = std::exp2(std::round(std::log2(step)));
  const int64_t groups = k / form.group, supers = k / kSuperGroup;
  switch (form.scale) {
    case GroupScale::kHalf:
      put_halves(to, step, groups);
      break;
    case GroupScale::kHalfAndMinimum:
      to = put_halves(to, step, groups);
      put_halves(to, step * static_cast<float>(num_codes - 1) / 2, groups);
      break;
    case GroupScale::kHalfAndZero:
      put_bytes(put_halves(to, step, groups), num_codes / 2, groups);
      break;
    case GroupScale::kSuper:
      to = put_halves(to, step / kGroupScale, supers);
      to = put_halves(to, step / kGroupScale * static_cast<float>(num_codes - 1) / 2, supers);
      put_bytes(put_bytes(to, kGroupScale, groups), kGroupScale, groups);
      break;
    case GroupScale::kSuperSigned:
      put_bytes(put_halves(to, step / kSignedGroupScale, supers), kSignedGroupScale, groups);
      break;
    case GroupScale::kFloat:
      put_floats(to, step, groups);
      break;
    case GroupScale::kFloatOfRow:
      put_floats(to, step, 1);
      break;
    case GroupScale::kRowAndByte:
      put_floats(to, step, 1);
      put_bytes(to + sizeof(float), e4m3_code(1), groups);
      break;
    case GroupScale::kNone:
      break;
  }
}

}  // namespace

void random_quantized_row(const QuantForm& form, uint64_t seed, int64_t row, int64_t k,
                          float deviation, std::byte* to) {
  const uint64_t row_seed = mixed(seed ^ mixed(static_cast<uint64_t>(row)));
  if (form.scale == GroupScale::kNone) return random_halves(row_seed, k, deviation, to);
  const uint64_t mask = 0x0101010101010101u * ((1u << form.bits) - 1);
  for (int64_t i = 0; i < k; i += 8) {
    const uint64_t codes = mixed(row_seed + static_cast<uint64_t>(i)) & mask;
    std::memcpy(to + i, &codes, static_cast<size_t>(std::min<int64_t>(8, k - i)));
  }
  if (form.table == CodeTable::kE4m3) {
    static const std::array<uint8_t, 256> kFloats = even_floats();
    std::transform(to, to + k, to, [](std::byte code) {
      return static_cast<std::byte>(kFloats[std::to_integer<size_t>(code)]);
    });
  }
  put_scales(form, k, deviation, to + k);
}

}  // namespace foretoken
