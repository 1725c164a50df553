#pragma once
#include <cstddef>
#include <cstdint>

#include "base/column_range.h"

namespace foretoken {

// What turns the codes of a group of neighbours in a row into values. z is 2^(bits - 1).
enum class GroupScale : uint8_t {
  kHalf,         // s * (code - z): a half s for each group
  kHalfAndZero,  // s * (code - zero): a half and a byte for each group
  kSuper,        // d * s * code - m * t: bytes s, t for each group, halves d, m for every 256 codes
  kSuperSigned,  // d * s * (code - z): a signed byte s for each group, a half d for every 256 codes
  kHalfAndMinimum,  // s * code - m: halves s, m for each group
  kNone,            // nothing: each code is a half of its own; 16 bits, groups of one
  kFloat,           // s * code: a float s for each group
  kFloatOfRow,      // s * code: a float s for each row, groups of one
  kRowAndByte,      // s * t * code: a float s for each row, a byte t of E4M3 for each group (NVFP4)
};

// What codes stand for instead of code - z.
enum class CodeTable : uint8_t {
  kNone,
  kIq4,   // sixteen steps that grow away from zero (ggml's IQ4_NL and IQ4_XS)
  kE2m1,  // twice the floats of four bits of OCP's microscaling formats: 0 to 12
  kE4m3,  // floats of eight bits (OCP's FP8), which kFloat and kFloatOfRow scale
};

inline constexpr int64_t kSuperGroup = 256;

// How the rows of a weight are quantised: unsigned codes of `bits` bits in groups along a row.
struct QuantForm {
  uint8_t bits = 8;
  GroupScale scale = GroupScale::kHalf;
  int32_t group = 32;
  CodeTable table = CodeTable::kNone;
  bool powers = false;  // the halves of kHalf are powers of two, or zero for groups of zeros
  // Rows are multiplied with rows that round_rows has rounded (takes_rounded_rows), which devices
  // may lay out for that.
  bool rounds_rows = false;

  bool operator==(const QuantForm&) const = default;
};

// A quantised row of k elements on its way from a file to a device, in whatever layout the file has
// it: k codes of a byte each, then halves, then bytes, without gaps. In the order of GroupScale the
// halves are s; s; all d, then all m; d; all s, then all m; and the bytes none; zero; all s, then
// all t; s; none. A row of kNone is its k halves alone; floats stand where halves would, and bytes
// of kRowAndByte behind its one.
int64_t quantized_row_halves(const QuantForm& form, int64_t k);
int64_t quantized_row_bytes(const QuantForm& form, int64_t k);
// Bytes of the row once its codes are packed.
int64_t packed_row_bytes(const QuantForm& form, int64_t k);

// Whether rows of k elements have whole groups.
bool fits_row(const QuantForm& form, int64_t k);

// Whether QuantForm::rounds_rows may be set: codes of E4M3 with a float for each row, or for each
// 128 elements of one.
bool takes_rounded_rows(const QuantForm& form);

// The sixteen values of a table of four bits. Null for others.
const int8_t* code_values(CodeTable table);

// The elements `columns` of such a row of columns.total, as a row of its own. All their numbers fit
// whole groups (fits_row).
void cut_quantized_row(const QuantForm& form, const std::byte* row, const ColumnRange& columns,
                       std::byte* to);

// The floats of such a row, which needs no alignment.
void dequantize_row(const QuantForm& form, const std::byte* row, int64_t k, float* out);

}  // namespace foretoken
