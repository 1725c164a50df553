#include "serve/answer/timings.h"

#include <algorithm>

namespace foretoken {
namespace {

using nlohmann::ordered_json;

double ms_between(OutputTimes::Time from, OutputTimes::Time to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

// "NAME_n", "NAME_ms", "NAME_per_token_ms", "NAME_per_second".
void add_part(const std::string& name, int64_t count, double ms, ordered_json* timings) {
  const auto number = static_cast<double>(count);
  (*timings)[name + "_n"] = count;
  (*timings)[name + "_ms"] = ms;
  (*timings)[name + "_per_token_ms"] = count > 0 ? ms / number : 0.0;
  (*timings)[name + "_per_second"] = ms > 0 ? 1e3 * number / ms : 0.0;
}

}  // namespace

ordered_json timings_json(const RequestStats& stats, const OutputTimes& times,
                          OutputTimes::Time submitted) {
  double prompt_ms = 0;
  double predicted_ms = 0;
  if (times.first) {
    const double queue_ms = static_cast<double>(stats.queue_ns) / 1e6;
    prompt_ms = std::max(ms_between(submitted, *times.first) - queue_ms, 0.0);
    predicted_ms = ms_between(*times.first, *times.last);
  }
  ordered_json timings = {{"cache_n", stats.num_cached_tokens}};
  add_part("prompt", stats.num_prompt_tokens - stats.num_cached_tokens, prompt_ms, &timings);
  add_part("predicted", stats.num_output_tokens, predicted_ms, &timings);
  if (stats.num_draft_tokens > 0) {
    timings["draft_n"] = stats.num_draft_tokens;
    timings["draft_n_accepted"] = stats.num_accepted_tokens;
  }
  return timings;
}

}  // namespace foretoken
