#pragma once
#include <foretoken/request.h>

#include <sstream>
#include <string>

#include "base/result.h"

namespace foretoken {

// The numbers of `sampling` that have a range whatever the model and the engine are: temperature,
// top_p, top_k, min_p and the three penalties. InvalidArgument names the field, its value and its
// range. NaN is never in range.
Status check_sampling_numbers(const SamplingParams& sampling);

// The two time-outs of `request`, which have one range everywhere, too.
Status check_times(const Request& request);

// "`name` is `value`; it must `range`".
template <class Number>
Status out_of_range(const std::string& name, Number value, const std::string& range) {
  std::ostringstream text;
  text << value;
  return invalid_argument(name + " is " + text.str() + "; it must " + range);
}

}  // namespace foretoken
