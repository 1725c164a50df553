#pragma once
#include <utility>
#include <vector>

namespace foretoken::bench {

// What is told about a set of numbers. All are 0 for an empty set.
struct Distribution {
  double mean = 0;
  double median = 0;
  double std = 0;                                      // of the population
  std::vector<std::pair<double, double>> percentiles;  // (percent, value), as asked for
};

// The value below which `percent` of `sorted` (ascending) lie, between neighbours by linear
// interpolation; 0 for none.
double percentile(const std::vector<double>& sorted, double percent);

// Every value is multiplied by `scale`.
Distribution describe(std::vector<double> values, const std::vector<double>& percents,
                      double scale = 1);

}  // namespace foretoken::bench
