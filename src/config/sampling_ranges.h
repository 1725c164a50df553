#pragma once
#include <foretoken/request.h>

#include <sstream>
#include <string>

#include "base/result.h"
#include "config/sampling_field.h"

namespace foretoken {

// Whether a field of `sampling` is in its range, whatever the model and the engine are.
// InvalidArgument names the field, or `shown` where it was given under another name, its value and
// its range. NaN is never in range.
Status check_sampling_field(const SamplingField& field, const SamplingParams& sampling,
                            const char* shown = nullptr);

// Every field, and what the fields mean together: no model allows what is refused here.
Status check_sampling_ranges(const SamplingParams& sampling);

// The two time-outs of `request`, which have one range everywhere, too.
Status check_times(const Request& request);

// What a value in the range must: "be in [0, 1]".
std::string range_sentence(const SamplingRange& range);

// "`name` is `value`; it must `range`".
template <class Number>
Status out_of_range(const std::string& name, Number value, const std::string& range) {
  std::ostringstream text;
  text << value;
  return invalid_argument(name + " is " + text.str() + "; it must " + range);
}

}  // namespace foretoken
