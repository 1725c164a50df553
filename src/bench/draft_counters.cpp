#include "bench/draft_counters.h"

#include <cstdlib>
#include <string>

namespace foretoken::bench {
namespace {

constexpr std::string_view kPrefix = "vllm:spec_decode_num_";
constexpr std::string_view kSuffix = "_total";
constexpr std::string_view kPosition = "position=\"";

// "vllm:spec_decode_num_drafts_total{...} 12.0" as its name's middle, labels and value.
struct MetricSample {
  std::string_view name;
  std::string_view labels;
  int64_t value = 0;
};

std::optional<MetricSample> read_line(std::string_view line) {
  if (line.substr(0, kPrefix.size()) != kPrefix) return {};
  const size_t end = line.find_first_of("{ ");
  if (end == std::string_view::npos || end < kPrefix.size() + kSuffix.size()) return {};
  if (line.substr(end - kSuffix.size(), kSuffix.size()) != kSuffix) return {};
  MetricSample sample;
  sample.name = line.substr(kPrefix.size(), end - kSuffix.size() - kPrefix.size());
  size_t value = end;
  if (line[end] == '{') {
    const size_t close = line.rfind('}');
    if (close == std::string_view::npos || close < end) return {};
    sample.labels = line.substr(end, close - end);
    value = close + 1;
  }
  const std::string number(line.substr(value));
  sample.value = static_cast<int64_t>(std::strtod(number.c_str(), nullptr));
  return sample;
}

void add(const MetricSample& sample, DraftCounters* counters) {
  if (sample.name == "drafts") counters->num_drafts += sample.value;
  if (sample.name == "draft_tokens") counters->num_draft_tokens += sample.value;
  if (sample.name == "accepted_tokens") counters->num_accepted_tokens += sample.value;
  if (sample.name != "accepted_tokens_per_pos") return;
  const size_t place = sample.labels.find(kPosition);
  if (place == std::string_view::npos) return;
  const std::string number(sample.labels.substr(place + kPosition.size()));
  counters->accepted_per_pos[std::atoi(number.c_str())] += sample.value;
}

}  // namespace

std::optional<DraftCounters> read_draft_counters(std::string_view text) {
  std::optional<DraftCounters> counters;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (const auto sample = read_line(text.substr(0, end))) {
      if (!counters) counters.emplace();
      add(*sample, &*counters);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return counters;
}

std::optional<DraftSummary> summarise_drafts(const std::optional<DraftCounters>& before,
                                             const std::optional<DraftCounters>& after) {
  if (!before || !after) return {};
  DraftSummary summary;
  summary.num_drafts = after->num_drafts - before->num_drafts;
  summary.draft_tokens = after->num_draft_tokens - before->num_draft_tokens;
  summary.accepted_tokens = after->num_accepted_tokens - before->num_accepted_tokens;
  if (summary.draft_tokens <= 0 || summary.num_drafts <= 0) return {};
  const auto accepted = static_cast<double>(summary.accepted_tokens);
  const auto drafts = static_cast<double>(summary.num_drafts);
  summary.acceptance_rate = accepted / static_cast<double>(summary.draft_tokens) * 100;
  summary.acceptance_length = 1 + accepted / drafts;
  for (const auto& [position, count] : after->accepted_per_pos) {
    const auto earlier = before->accepted_per_pos.find(position);
    const int64_t old = earlier == before->accepted_per_pos.end() ? 0 : earlier->second;
    summary.acceptance_by_pos.push_back(static_cast<double>(count - old) / drafts);
  }
  return summary;
}

}  // namespace foretoken::bench
