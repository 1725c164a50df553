#include "base/sampling_ranges.h"

namespace foretoken {
namespace {

Status check_between(const char* name, float value, int low, int high) {
  if (value >= static_cast<float>(low) && value <= static_cast<float>(high)) return {};
  return out_of_range(name, value,
                      "be in [" + std::to_string(low) + ", " + std::to_string(high) + "]");
}

}  // namespace

Status check_sampling_numbers(const SamplingParams& sampling) {
  FT_RETURN_IF_ERROR(check_between("temperature", sampling.temperature, 0, 1'000'000));
  if (!(sampling.top_p > 0.0f && sampling.top_p <= 1.0f)) {
    return out_of_range("top_p", sampling.top_p, "be in (0, 1]");
  }
  if (sampling.top_k < -1) {
    return out_of_range("top_k", sampling.top_k, "be -1 or 0 (off), or at least 1");
  }
  FT_RETURN_IF_ERROR(check_between("min_p", sampling.min_p, 0, 1));
  FT_RETURN_IF_ERROR(check_between("presence_penalty", sampling.presence_penalty, -2, 2));
  FT_RETURN_IF_ERROR(check_between("frequency_penalty", sampling.frequency_penalty, -2, 2));
  // Beyond these a logit would leave the range of floats.
  if (!(sampling.repetition_penalty >= 1e-6f && sampling.repetition_penalty <= 1e6f)) {
    return out_of_range("repetition_penalty", sampling.repetition_penalty, "be in [1e-6, 1e6]");
  }
  return {};
}

Status check_times(const Request& request) {
  constexpr double kLongest = 1e9;  // seconds
  for (const auto& [name, seconds] :
       {std::pair{"queue_timeout_seconds", request.queue_timeout_seconds},
        std::pair{"timeout_seconds", request.timeout_seconds}}) {
    if (seconds >= 0 && seconds <= kLongest) continue;  // false for NaN
    return out_of_range(name, seconds, "be in [0, 1e9]; 0 means any time");
  }
  return {};
}

}  // namespace foretoken
