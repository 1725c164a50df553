#include "convert/awq_matrix.h"

#include <array>

#include "base/check.h"
#include "convert/int_matrix.h"

namespace foretoken {
namespace {

// The row of a word whose code lies at each place, from the lowest bits on.
constexpr std::array<int64_t, kAwqPack> kRowAt = {0, 2, 4, 6, 1, 3, 5, 7};
constexpr int kAwqBits = 4;

// Words of what `at` gives for each row: [n / 8].
template <typename At>
void pack_rows(int64_t rows, const At& at, uint32_t* words) {
  for (int64_t word = 0; word < rows / kAwqPack; ++word) {
    for (int64_t place = 0; place < kAwqPack; ++place) {
      words[word] |= at(word * kAwqPack + kRowAt[static_cast<size_t>(place)]) << (place * kAwqBits);
    }
  }
}

}  // namespace

Result<AwqMatrix> quantize_awq(const TensorRows& rows, int64_t group) {
  const int64_t n = rows.rows(), k = rows.cols();
  FT_CHECK(k % group == 0 && n % kAwqPack == 0);
  FT_ASSIGN_OR_RETURN(const IntMatrix ints, round_to_ints(rows, {kAwqBits, group, true}));
  AwqMatrix matrix;
  matrix.codes.resize(static_cast<size_t>(k * n / kAwqPack));
  matrix.zeros.resize(static_cast<size_t>(ints.groups * n / kAwqPack));
  matrix.scales.resize(static_cast<size_t>(ints.groups * n));
  const auto code_words = [&](int64_t first, int64_t count) -> Status {
    for (int64_t col = first; col < first + count; ++col) {
      pack_rows(
          n, [&](int64_t row) { return ints.code(row, col); },
          matrix.codes.data() + col * n / kAwqPack);
    }
    return {};
  };
  FT_RETURN_IF_ERROR(for_slices(k, code_words));
  for (int64_t g = 0; g < ints.groups; ++g) {
    pack_rows(
        n, [&](int64_t row) { return ints.zero(row, g); }, matrix.zeros.data() + g * n / kAwqPack);
    for (int64_t row = 0; row < n; ++row) {
      matrix.scales[static_cast<size_t>(g * n + row)] = ints.scale(row, g);
    }
  }
  return matrix;
}

}  // namespace foretoken
