#include "apps/bench/pair_stats.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr double kTail = 0.025;

// The largest number k of values that may be left out at each end: the chance that fewer than k of
// n fair draws agree stays within the tail.
size_t num_cut(size_t n) {
  double chance = std::pow(0.5, static_cast<double>(n));
  double below = 0;
  size_t k = 0;
  while (k < n && below + chance <= kTail) {
    below += chance;
    chance = chance * static_cast<double>(n - k) / static_cast<double>(k + 1);
    ++k;
  }
  return k == 0 ? 0 : k - 1;
}

}  // namespace

double median(std::vector<double> values) {
  FT_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

MedianInterval median_interval(std::vector<double> values) {
  FT_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t cut = num_cut(values.size());
  return {values[cut], median(values), values[values.size() - 1 - cut]};
}

}  // namespace foretoken
