#include "spec/time_shares.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken {

void TimeShares::add(int size, int64_t share) {
  FT_CHECK(size > 0 && share > 0 && share <= kOne);
  FT_CHECK(points_.empty() || size > points_.back().size);
  points_.push_back({size, share});
}

void TimeShares::add_ratio(int size, int64_t part, int64_t whole) {
  const int64_t share = whole > 0 && part < whole ? part * kOne / whole : kOne;
  add(size, std::max(share, kOne / 16));
}

int64_t TimeShares::at(int size) const {
  if (points_.empty()) return kOne;
  const auto high = std::ranges::lower_bound(points_, size, {}, &Point::size);
  if (high == points_.begin()) return high->share;
  if (high == points_.end()) return points_.back().share;
  const Point& low = *std::prev(high);
  return low.share + (high->share - low.share) * (size - low.size) / (high->size - low.size);
}

}  // namespace foretoken
