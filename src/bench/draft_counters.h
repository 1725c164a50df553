#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace foretoken::bench {

// vLLM's counters of speculative decoding, summed over models and engines.
struct DraftCounters {
  int64_t num_drafts = 0;
  int64_t num_draft_tokens = 0;
  int64_t num_accepted_tokens = 0;
  std::map<int, int64_t> accepted_per_pos;
};

// From the text of /metrics; none where it has no vllm:spec_decode_*_total.
std::optional<DraftCounters> read_draft_counters(std::string_view text);

// What drafting did between two readings.
struct DraftSummary {
  int64_t num_drafts = 0;
  int64_t draft_tokens = 0;
  int64_t accepted_tokens = 0;
  double acceptance_rate = 0;             // accepted of drafted tokens, in percent
  double acceptance_length = 0;           // 1 + accepted tokens / drafts
  std::vector<double> acceptance_by_pos;  // accepted at the position / drafts
};

// None where a reading is missing or nothing was drafted between.
std::optional<DraftSummary> summarise_drafts(const std::optional<DraftCounters>& before,
                                             const std::optional<DraftCounters>& after);

}  // namespace foretoken::bench
