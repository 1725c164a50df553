#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace foretoken::bench {

double percentile(const std::vector<double>& sorted, double percent) {
  if (sorted.empty()) return 0;
  const double place = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(std::floor(place));
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (place - static_cast<double>(low));
}

Distribution describe(std::vector<double> values, const std::vector<double>& percents,
                      double scale) {
  for (double& value : values) value *= scale;
  std::sort(values.begin(), values.end());
  Distribution result;
  if (!values.empty()) {
    const auto count = static_cast<double>(values.size());
    result.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
    double squares = 0;
    for (const double value : values) squares += (value - result.mean) * (value - result.mean);
    result.std = std::sqrt(squares / count);
  }
  result.median = percentile(values, 50);
  for (const double percent : percents) {
    result.percentiles.emplace_back(percent, percentile(values, percent));
  }
  return result;
}

}  // namespace foretoken::bench
