#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "convert/tensor_rows.h"

namespace foretoken {

// How a matrix becomes integers: groups of a row are rounded to nearest.
struct IntForm {
  int bits = 4;             // or 8
  int64_t group = 128;      // columns that share a scale
  bool has_zeros = false;   // a zero for each group; else all are 2^(bits - 1)
  bool bf16_scale = false;  // scales are bfloat16; else halves

  int64_t per_word() const { return 32 / bits; }
  uint8_t middle() const { return static_cast<uint8_t>(1 << (bits - 1)); }
};

// What a group's codes stand for: weight = scale * (code - zero).
struct IntGroup {
  float scale = 0;
  uint8_t zero = 0;
};

// Rounds a group; its codes go one after the other into `codes`. With zeros, 0 is a number of the
// group and its ends are the least and the largest code.
IntGroup round_to_ints(const float* values, const IntForm& form, uint8_t* codes);

// A matrix of n rows and k columns, which is yet in no file's order.
struct IntMatrix {
  int64_t rows = 0, cols = 0, groups = 0;  // of a row
  std::vector<uint8_t> codes;              // [n, k]
  std::vector<uint16_t> scales;            // [n, groups], the bits of halves or of bfloat16
  std::vector<uint8_t> zeros;              // [n, groups]

  uint32_t code(int64_t row, int64_t col) const {
    return codes[static_cast<size_t>(row * cols + col)];
  }
  uint16_t scale(int64_t row, int64_t group) const {
    return scales[static_cast<size_t>(row * groups + group)];
  }
  uint32_t zero(int64_t row, int64_t group) const {
    return zeros[static_cast<size_t>(row * groups + group)];
  }
};

// Errors as of TensorRows::read. k must be a multiple of the group.
Result<IntMatrix> round_to_ints(const TensorRows& rows, const IntForm& form);

}  // namespace foretoken
