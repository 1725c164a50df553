#include "spec/draft_schedule.h"

#include <algorithm>
#include <string>

#include "spec/acceptance_rates.h"

namespace foretoken {

Status check_schedule(const std::vector<DraftSchedule>& schedule) {
  const std::string name = "num_speculative_tokens_per_batch_size";
  int64_t next = 1;
  for (const DraftSchedule& range : schedule) {
    const std::string text =
        "[" + std::to_string(range.first) + ", " + std::to_string(range.last) + "]";
    if (next == 1 && range.first != 1) {
      return invalid_argument(name + ": the first range " + text + " must begin with 1");
    }
    if (range.first < next || range.last < range.first) {
      return invalid_argument(name + ": range " + text +
                              " is empty or overlaps the one before; give rising ranges");
    }
    if (range.num_speculative_tokens < 0 || range.num_speculative_tokens > kMaxDraftTokens) {
      return invalid_argument(name + ": range " + text + " asks for " +
                              std::to_string(range.num_speculative_tokens) + " drafts; use 0 to " +
                              std::to_string(kMaxDraftTokens));
    }
    next = int64_t{range.last} + 1;
  }
  return schedule.empty() ? invalid_argument(name + " is empty; give at least one range")
                          : Status();
}

int scheduled_draft_tokens(const std::vector<DraftSchedule>& schedule, int num_sequences,
                           int most) {
  int limit = most;
  for (const DraftSchedule& range : schedule) {
    if (range.first > std::max(1, num_sequences)) break;
    limit = range.num_speculative_tokens;
  }
  return std::min(limit, most);
}

}  // namespace foretoken
