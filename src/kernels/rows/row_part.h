#pragma once
#include <cstdint>

#include "base/host_device.h"

namespace foretoken {

// Columns of a row that are a part of a longer row, which ranks have together:
// [column, column + count) are elements [begin, begin + count) of that one, whose groups of `group`
// elements are measured and normed each by themselves. Ranks may have parts of a group.
struct RowPart {
  int32_t column;
  int32_t count;
  int32_t begin;
  int32_t group;
  int32_t entry;  // of the first group of the longer row, among the entries of a row

  FT_HD int32_t first_group() const { return begin / group; }
  FT_HD int32_t last_group() const { return (begin + count - 1) / group; }
  // Where group g begins and ends among the part's elements.
  FT_HD int32_t begin_of(int32_t g) const { return g * group > begin ? g * group - begin : 0; }
  FT_HD int32_t end_of(int32_t g) const {
    return (g + 1) * group - begin < count ? (g + 1) * group - begin : count;
  }
};

inline constexpr int32_t kMaxRowParts = 2;  // of a row that an op takes

}  // namespace foretoken
