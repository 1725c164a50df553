#pragma once
#include <foretoken/config.h>

#include <vector>

#include "base/result.h"

namespace foretoken {

// InvalidArgument unless the ranges begin with 1, follow one another without overlap and are within
// bounds. Gaps and what lies behind the last range keep the number before them.
Status check_schedule(const std::vector<DraftSchedule>& schedule);

// Drafts that a schedule gives each of so many sequences, at most `most`, which is also what an
// empty schedule gives.
int scheduled_draft_tokens(const std::vector<DraftSchedule>& schedule, int num_sequences, int most);

}  // namespace foretoken
