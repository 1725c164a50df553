#include "serve/metrics/metric_buckets.h"

namespace foretoken {

std::vector<double> first_token_buckets() {
  return {0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,   0.25,  0.5,   0.75,
          1.0,   2.5,   5.0,   7.5,  10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0};
}

std::vector<double> token_latency_buckets() {
  return {0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.075, 0.1,  0.15, 0.2,
          0.3,    0.4,   0.5,   0.75,  1.0,   2.5,    5.0,  7.5,   10.0, 20.0,  40.0, 80.0};
}

std::vector<double> request_buckets() {
  return {0.01, 0.03, 0.1,  0.3,  0.5,  0.8,  1.0,   1.5,   2.0,   2.5,   5.0,    10.0,
          15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0};
}

std::vector<double> count_buckets(int most) {
  std::vector<double> bounds;
  for (double power = 1;; power *= 10) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      if (digit * power > most) return bounds;
      bounds.push_back(digit * power);
    }
  }
}

}  // namespace foretoken
