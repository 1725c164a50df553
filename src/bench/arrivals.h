#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/result.h"

namespace foretoken::bench {

enum class RampUp { kNone, kLinear, kExponential };

// When requests are released.
struct ArrivalOptions {
  double request_rate =
      std::numeric_limits<double>::infinity();  // requests/s; infinite: all at once
  // Shape of the gamma distribution of the gaps: 1 is a Poisson process, less comes in bursts, more
  // is more even.
  double burstiness = 1;
  // The rate goes from start to end over the requests, in place of request_rate.
  RampUp ramp_up = RampUp::kNone;
  double start_rps = 0;
  double end_rps = 0;
  uint64_t seed = 0;
};

// InvalidArgument names the flag that is wrong.
Status check_arrivals(const ArrivalOptions& options);

// The rate at which request `i` of `num_requests` is released.
double rate_at(const ArrivalOptions& options, size_t i, size_t num_requests);

// Seconds from the start, ascending, one for each request. Without a ramp they are stretched so
// that the last comes at num_requests / request_rate exactly, and different seeds carry the same
// load. The same seed gives the same times. `options` must pass check_arrivals.
std::vector<double> arrival_times(const ArrivalOptions& options, size_t num_requests);

}  // namespace foretoken::bench
