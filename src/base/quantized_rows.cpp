#include "base/quantized_rows.h"

#include <cstring>

#include "base/float8.h"
#include "base/half.h"

namespace foretoken {
namespace {

bool is_super(const QuantForm& form) {
  return form.scale == GroupScale::kSuper || form.scale == GroupScale::kSuperSigned;
}

int64_t bytes_per_group(GroupScale scale) {
  switch (scale) {
    case GroupScale::kHalf:
    case GroupScale::kHalfAndMinimum:
    case GroupScale::kNone:
    case GroupScale::kFloat:
    case GroupScale::kFloatOfRow:
      return 0;
    case GroupScale::kHalfAndZero:
    case GroupScale::kSuperSigned:
    case GroupScale::kRowAndByte:
      return 1;
    case GroupScale::kSuper:
      return 2;
  }
  return 0;
}

// Lists of halves that follow one another, each with some halves for a group (a super-group).
int64_t half_lists(GroupScale scale) {
  const bool has_two = scale == GroupScale::kSuper || scale == GroupScale::kHalfAndMinimum;
  return scale == GroupScale::kNone ? 0 : has_two ? 2 : 1;
}
bool has_float_of_row(GroupScale scale) {
  return scale == GroupScale::kFloatOfRow || scale == GroupScale::kRowAndByte;
}
int64_t halves_of_scale(GroupScale scale) {
  return scale == GroupScale::kFloat || has_float_of_row(scale) ? 2 : 1;
}

// Elements for which a list of halves has a scale.
int64_t scaled_elements(const QuantForm& form, int64_t k) {
  if (has_float_of_row(form.scale)) return k;
  return is_super(form) ? kSuperGroup : form.group;
}

int64_t code_bytes(const QuantForm& form, int64_t k) {
  return form.scale == GroupScale::kNone ? 2 * k : k;
}

constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};

constexpr int8_t kE2m1Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

float float_at(const std::byte* floats, int64_t i) {
  float value;
  std::memcpy(&value, floats + 4 * i, sizeof value);
  return value;
}

float half_at(const std::byte* halves, int64_t i) {
  uint16_t bits;
  std::memcpy(&bits, halves + 2 * i, sizeof bits);
  return half_to_float(bits);
}

}  // namespace

int64_t quantized_row_halves(const QuantForm& form, int64_t k) {
  return k / scaled_elements(form, k) * half_lists(form.scale) * halves_of_scale(form.scale);
}

int64_t quantized_row_bytes(const QuantForm& form, int64_t k) {
  return code_bytes(form, k) + 2 * quantized_row_halves(form, k) +
         k / form.group * bytes_per_group(form.scale);
}

bool takes_rounded_rows(const QuantForm& form) {
  constexpr int32_t kGroup = 128;  // that round_rows has scales for
  return form.table == CodeTable::kE4m3 &&
         (form.scale == GroupScale::kFloatOfRow ||
          (form.scale == GroupScale::kFloat && form.group == kGroup));
}

int64_t packed_row_bytes(const QuantForm& form, int64_t k) {
  return k * form.bits / 8 + quantized_row_bytes(form, k) - code_bytes(form, k);
}

const int8_t* code_values(CodeTable table) {
  switch (table) {
    case CodeTable::kNone:
      return nullptr;
    case CodeTable::kIq4:
      return kIq4Values;
    case CodeTable::kE2m1:
      return kE2m1Values;
    case CodeTable::kE4m3:
      return nullptr;
  }
  return nullptr;
}

bool fits_row(const QuantForm& form, int64_t k) {
  return k > 0 && k % form.group == 0 && (!is_super(form) || k % kSuperGroup == 0);
}

void cut_quantized_row(const QuantForm& form, const std::byte* row, const ColumnRange& columns,
                       std::byte* to) {
  const int64_t k = columns.total, width = columns.width();
  const auto take = [&](const std::byte* from, int64_t bytes) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    to += bytes;
  };
  // Of a list that has `bytes` for every `unit` elements.
  const auto take_pieces = [&](const std::byte* list, int64_t unit, int64_t bytes) {
    for (int64_t piece = 0; piece < columns.pieces; ++piece) {
      const int64_t first = columns.first + piece * columns.apart;
      take(list + first / unit * bytes, width / unit * bytes);
    }
  };
  for (int64_t piece = 0; piece < columns.pieces; ++piece) {
    take(row + code_bytes(form, columns.first + piece * columns.apart), code_bytes(form, width));
  }
  const std::byte* halves = row + code_bytes(form, k);
  if (has_float_of_row(form.scale)) {
    take(halves, sizeof(float));
  } else {
    const int64_t unit = scaled_elements(form, k), bytes_each = 2 * halves_of_scale(form.scale);
    for (int64_t i = 0; i < half_lists(form.scale); ++i) {
      take_pieces(halves + bytes_each * i * (k / unit), unit, bytes_each);
    }
  }
  const std::byte* bytes = halves + 2 * quantized_row_halves(form, k);
  for (int64_t i = 0; i < bytes_per_group(form.scale); ++i) {
    take_pieces(bytes + i * (k / form.group), form.group, 1);
  }
}

namespace {

// What scales the codes of a row of k, as it lies behind them.
struct RowScales {
  const std::byte* halves;
  const std::byte* bytes;
  int64_t groups;
  int64_t supers;
};

// The value of code i; centred: the code less its middle, or what it stands for in a table.
float scaled_code(const QuantForm& form, const RowScales& row, int64_t i, float code,
                  float centred) {
  const std::byte* halves = row.halves;
  const int64_t group = i / form.group, super = i / kSuperGroup;
  const auto byte_at = [&](int64_t at) { return std::to_integer<int>(row.bytes[at]); };
  switch (form.scale) {
    case GroupScale::kHalf:
      return half_at(halves, group) * centred;
    case GroupScale::kHalfAndZero:
      return half_at(halves, group) * (code - static_cast<float>(byte_at(group)));
    case GroupScale::kHalfAndMinimum:
      return half_at(halves, group) * code - half_at(halves, row.groups + group);
    case GroupScale::kSuper: {
      const float scale = half_at(halves, super) * static_cast<float>(byte_at(group));
      const float minimum =
          half_at(halves, row.supers + super) * static_cast<float>(byte_at(row.groups + group));
      return scale * code - minimum;
    }
    case GroupScale::kSuperSigned:
      return half_at(halves, super) * static_cast<float>(static_cast<int8_t>(byte_at(group))) *
             centred;
    case GroupScale::kFloat:
      return float_at(halves, group) * code;
    case GroupScale::kFloatOfRow:
      return float_at(halves, 0) * code;
    case GroupScale::kRowAndByte:
      return float_at(halves, 0) * (e4m3_value(static_cast<uint8_t>(byte_at(group))) * centred);
    case GroupScale::kNone:
      break;
  }
  return 0;
}

}  // namespace

void dequantize_row(const QuantForm& form, const std::byte* row, int64_t k, float* out) {
  if (form.scale == GroupScale::kNone) {
    for (int64_t i = 0; i < k; ++i) out[i] = half_at(row, i);
    return;
  }
  const std::byte* halves = row + k;
  const std::byte* bytes = halves + 2 * quantized_row_halves(form, k);
  const RowScales scales{halves, bytes, k / form.group, k / kSuperGroup};
  const int8_t* values = code_values(form.table);
  const float middle = static_cast<float>(1 << (form.bits - 1));
  for (int64_t i = 0; i < k; ++i) {
    const int whole = std::to_integer<int>(row[i]);
    const auto code = form.table == CodeTable::kE4m3 ? e4m3_value(static_cast<uint8_t>(whole))
                                                     : static_cast<float>(whole);
    const float centred = values != nullptr ? static_cast<float>(values[whole]) : code - middle;
    out[i] = scaled_code(form, scales, i, code, centred);
  }
}

}  // namespace foretoken
