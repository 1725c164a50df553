#pragma once
#include <vector>

namespace foretoken {

// The middle of `values`, or the mean of the two middle ones. At least one value.
double median(std::vector<double> values);

// A median and the interval that covers the true one with a chance of at least 95 %, whatever the
// distribution (order statistics); of fewer than six values it is their range.
struct MedianInterval {
  double low = 0;
  double median = 0;
  double high = 0;
};
MedianInterval median_interval(std::vector<double> values);

}  // namespace foretoken
