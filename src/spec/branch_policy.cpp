#include "spec/branch_policy.h"

#include <algorithm>

namespace foretoken {
namespace {

// Steps that have all branches at first. Fewer, and chance decides about a drafter for long.
constexpr int64_t kFirstSteps = 16;
// Steps between explorations, and how long one is: the second step verifies what the first drafted.
constexpr uint64_t kStepsBetween = 256;
constexpr uint64_t kExploredSteps = 3;
// A step with branches takes at most so much longer than without, in sixteenths, where it explores.
constexpr int64_t kMaxSixteenths = 24;
// What was seen counts 1/kFadeSteps less with every step.
constexpr int64_t kFadeSteps = 128;
constexpr int64_t kTokenUnit = 256;  // of a token

}  // namespace

void BranchPolicy::observe(uint64_t step, int committed, int winner, int by_branch) {
  Seen& seen = ring_[step % kRingSize];
  if (seen.step != step + 1) seen = {.step = step + 1};
  seen.tokens += committed - by_branch;
  if (winner >= 0 && winner < kMaxBranches) {
    seen.by_branch[static_cast<size_t>(winner)] += by_branch;
  }
}

// Results that every number of steps in flight knows.
void BranchPolicy::take_in(uint64_t step) {
  if (step < max_age_) return;
  Seen& seen = ring_[(step - max_age_) % kRingSize];
  if (seen.step != step - max_age_ + 1 || seen.tokens == 0) return;
  tokens_ += seen.tokens * kTokenUnit - tokens_ / kFadeSteps;
  for (size_t i = 0; i < by_branch_.size(); ++i) {
    by_branch_[i] += seen.by_branch[i] * kTokenUnit - by_branch_[i] / kFadeSteps;
  }
  ++num_seen_;
  seen.tokens = 0;
}

int BranchPolicy::decide(uint64_t step, const Load& load, const TimeCurve& rows_ns) {
  if (max_branches_ == 0 || load.num_rows == 0) return 0;
  take_in(step);
  if (rows_ns.empty()) return max_branches_;
  return explores(step, load, rows_ns) ? max_branches_ : best_of(load, rows_ns);
}

bool BranchPolicy::explores(uint64_t step, const Load& load, const TimeCurve& rows_ns) {
  const int64_t plain = rows_ns.at(load.num_rows) + load.draft_ns;
  const int64_t full = rows_ns.at(load.num_rows + max_branches_ * load.rows_each) + load.draft_ns;
  if (full * 16 > plain * kMaxSixteenths) return false;
  if (num_seen_ < kFirstSteps) {
    explore_from_ = step + kStepsBetween;
    return true;
  }
  if (step < explore_from_) return false;
  if (step >= explore_from_ + kExploredSteps) explore_from_ = step + kStepsBetween;
  return true;
}

// The most tokens in the time of a step among none, a quarter, half and all of them.
int BranchPolicy::best_of(const Load& load, const TimeCurve& rows_ns) const {
  int best = 0;
  int64_t best_tokens = tokens_;
  int64_t best_ns = rows_ns.at(load.num_rows) + load.draft_ns;
  for (const int part : {4, 2, 1}) {
    const int count = (max_branches_ + part - 1) / part;
    int64_t tokens = tokens_;
    for (int i = 0; i < std::min(count, kMaxBranches); ++i) {
      tokens += by_branch_[static_cast<size_t>(i)];
    }
    const int64_t ns = rows_ns.at(load.num_rows + count * load.rows_each) + load.draft_ns;
    if (tokens * best_ns <= best_tokens * ns) continue;
    best = count;
    best_tokens = tokens;
    best_ns = ns;
  }
  return best;
}

}  // namespace foretoken
