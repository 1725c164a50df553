#pragma once
#include <cstdint>

namespace foretoken {

// `count` columns of a matrix of `total`: pieces of equal widths, one behind the other, which begin
// at `first` and then `apart` apart.
struct ColumnRange {
  int64_t total;
  int64_t first;
  int64_t count;
  int64_t pieces = 1;
  int64_t apart = 0;

  int64_t width() const { return count / pieces; }
  bool is_whole() const { return count == total && pieces == 1; }
  // Which column is wanted at `column`.
  int64_t source_of(int64_t column) const {
    return first + column / width() * apart + column % width();
  }
};

}  // namespace foretoken
