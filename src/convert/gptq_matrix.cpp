#include "convert/gptq_matrix.h"

#include "base/check.h"
#include "convert/int_matrix.h"

namespace foretoken {
namespace {

uint32_t repeated(uint32_t code, int bits) {
  uint32_t word = 0;
  for (int at = 0; at < 32; at += bits) word |= code << at;
  return word;
}

}  // namespace

Result<GptqMatrix> quantize_gptq(const TensorRows& rows, const GptqForm& form) {
  const int64_t n = rows.rows(), k = rows.cols(), pack = form.per_word();
  FT_CHECK(k % form.group == 0 && n % pack == 0 && k % pack == 0);
  const int64_t num_groups = k / form.group;
  FT_ASSIGN_OR_RETURN(const IntMatrix ints, round_to_ints(rows, {form.bits, form.group}));
  GptqMatrix matrix;
  matrix.codes.resize(static_cast<size_t>(k / pack * n));
  matrix.scales.resize(static_cast<size_t>(num_groups * n));
  const uint32_t stored_zero = (1u << (form.bits - 1)) - 1;
  matrix.zeros.assign(static_cast<size_t>(num_groups * (n / pack)),
                      repeated(stored_zero, form.bits));
  for (int64_t i = 0; i < k; ++i) matrix.groups.push_back(static_cast<int32_t>(i / form.group));
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t g = 0; g < num_groups; ++g) {
      matrix.scales[static_cast<size_t>(g * n + row)] = ints.scale(row, g);
    }
    for (int64_t i = 0; i < k; ++i) {
      matrix.codes[static_cast<size_t>(i / pack * n + row)] |= ints.code(row, i)
                                                               << (i % pack * form.bits);
    }
  }
  return matrix;
}

}  // namespace foretoken
