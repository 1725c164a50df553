#include "config/sampling_ranges.h"

#include "config/sampling_fields.h"

namespace foretoken {
namespace sampling_ranges {

using Biases = std::vector<std::pair<int32_t, float>>;

template <class T>
Status check(const SamplingField& field, const std::string& name, const T& value) {
  if constexpr (std::is_same_v<T, int> || std::is_same_v<T, float>) {
    if (field.range.holds(value)) return {};
    return out_of_range(name, value, range_sentence(field.range));
  }
  return {};
}

template <class T>
Status check(const SamplingField& field, const std::string& name, const std::optional<T>& value) {
  return value ? check(field, name, *value) : Status();
}

Status check(const SamplingField&, const std::string& name,
             const std::optional<std::vector<int32_t>>& ids) {
  if (!ids || !ids->empty()) return {};
  return invalid_argument(name + " must not be empty; leave it out to allow all");
}

Status check(const SamplingField&, const std::string& name, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (text.empty()) return invalid_argument(name + " must not hold an empty string");
  }
  return {};
}

Status check(const SamplingField& field, const std::string& name, const Biases& biases) {
  for (const auto& [id, bias] : biases) {
    if (!field.range.holds(bias)) {
      return out_of_range(name + " of token id " + std::to_string(id), bias,
                          range_sentence(field.range));
    }
    if (id < 0) return out_of_range(name, id, "name token ids from 0 up");
  }
  return {};
}

}  // namespace sampling_ranges

std::string range_sentence(const SamplingRange& range) {
  if (range.sentence != nullptr) return range.sentence;
  const std::string text = range_text(range);
  return text.starts_with("at least") ? "be " + text : "be in " + text;
}

Status check_sampling_field(const SamplingField& field, const SamplingParams& sampling,
                            const char* shown) {
  Status status;
  visit_sampling_member(field, sampling, [&](const auto& value) {
    status = sampling_ranges::check(field, shown == nullptr ? field.name : shown, value);
  });
  return status;
}

Status check_sampling_ranges(const SamplingParams& sampling) {
  for (const SamplingField& field : sampling_fields()) {
    FT_RETURN_IF_ERROR(check_sampling_field(field, sampling));
  }
  if (sampling.min_tokens > sampling.max_tokens) {
    return out_of_range("min_tokens", sampling.min_tokens,
                        "be in [0, max_tokens], which is " + std::to_string(sampling.max_tokens));
  }
  if (sampling.n > 1 && sampling.temperature == 0 && sampling.logits_processors.empty()) {
    return invalid_argument("n is " + std::to_string(sampling.n) +
                            ", but with temperature 0 every choice would be the same; use n 1 or "
                            "a temperature above 0");
  }
  if (!sampling.stop.empty() && !sampling.detokenize) {
    return invalid_argument("stop strings need text; leave out stop or detokenize=false");
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
