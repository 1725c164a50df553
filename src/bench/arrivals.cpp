#include "bench/arrivals.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace foretoken::bench {

Status check_arrivals(const ArrivalOptions& options) {
  if (!(options.request_rate > 0)) {
    return invalid_argument("--request-rate must be above 0, or inf for all requests at once");
  }
  if (!(options.burstiness > 0)) return invalid_argument("--burstiness must be above 0");
  if (options.ramp_up == RampUp::kNone) {
    if (options.start_rps == 0 && options.end_rps == 0) return {};
    return invalid_argument(
        "--ramp-up-start-rps and --ramp-up-end-rps need --ramp-up-strategy linear or exponential");
  }
  if (!std::isinf(options.request_rate)) {
    return invalid_argument("--ramp-up-strategy sets the rate itself; leave --request-rate out");
  }
  if (!(options.start_rps > 0) || !(options.end_rps >= options.start_rps)) {
    return invalid_argument(
        "--ramp-up-strategy needs --ramp-up-start-rps above 0 and a --ramp-up-end-rps that is not "
        "lower");
  }
  return {};
}

double rate_at(const ArrivalOptions& options, size_t i, size_t num_requests) {
  if (options.ramp_up == RampUp::kNone) return options.request_rate;
  const double progress =
      static_cast<double>(i) / static_cast<double>(std::max<size_t>(num_requests - 1, 1));
  if (options.ramp_up == RampUp::kLinear) {
    return options.start_rps + (options.end_rps - options.start_rps) * progress;
  }
  return options.start_rps * std::pow(options.end_rps / options.start_rps, progress);
}

std::vector<double> arrival_times(const ArrivalOptions& options, size_t num_requests) {
  std::mt19937_64 generator(options.seed);
  std::gamma_distribution<double> gap(std::isinf(options.burstiness) ? 1 : options.burstiness, 1);
  std::vector<double> times(num_requests);
  double time = 0;
  for (size_t i = 0; i < num_requests; ++i) {
    const double rate = rate_at(options, i, num_requests);
    if (std::isinf(rate)) continue;
    const bool even = std::isinf(options.burstiness);
    time += even ? 1 / rate : gap(generator) / (rate * options.burstiness);
    times[i] = time;
  }
  if (options.ramp_up == RampUp::kNone && time > 0) {
    const double factor = static_cast<double>(num_requests) / options.request_rate / time;
    for (double& each : times) each *= factor;
  }
  return times;
}

}  // namespace foretoken::bench
