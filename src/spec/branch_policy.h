#pragma once
#include <array>
#include <cstdint>

#include "spec/cost_table.h"

namespace foretoken {

// Decides how many branches (docs/decisions/0047) a step may have: as many as bring the most tokens
// per modelled time, by what each of them brought of late. Where nothing is known yet, and now and
// then, a few steps have as many as there can be, unless these take far longer. Integer arithmetic
// on results that are at least `max_age` steps old: the same calls give the same numbers. Engine
// thread; allocates nothing.
class BranchPolicy {
 public:
  static constexpr int kMaxBranches = 32;

  // max_branches: of a step; 0: there are none.
  BranchPolicy(int max_branches, uint64_t max_age)
      : max_branches_(max_branches), max_age_(max_age) {}

  // What a step has beside its branches.
  struct Load {
    int num_rows = 0;      // of sequences that decode, with their drafts
    int rows_each = 0;     // of a branch
    int64_t draft_ns = 0;  // of draft passes
  };
  // Of step `step`, with what token rows cost; without costs always as many as there can be.
  int decide(uint64_t step, const Load& load, const TimeCurve& rows_ns);

  // A span of the step that had drafts: ids committed, of which `by_branch` were drafts that only
  // the branch of number `winner` had; -1: its own drafts were the longest.
  void observe(uint64_t step, int committed, int winner, int by_branch);

 private:
  struct Seen {
    uint64_t step = 0;
    int64_t tokens = 0;  // without branches
    std::array<int32_t, kMaxBranches> by_branch{};
  };
  static constexpr int kRingSize = 8;

  void take_in(uint64_t step);
  int best_of(const Load& load, const TimeCurve& rows_ns) const;
  bool explores(uint64_t step, const Load& load, const TimeCurve& rows_ns);

  const int max_branches_;
  const uint64_t max_age_;
  std::array<Seen, kRingSize> ring_{};
  // Of steps with branches, fading.
  int64_t tokens_ = 0;
  std::array<int64_t, kMaxBranches> by_branch_{};
  int64_t num_seen_ = 0;  // steps that `tokens_` rests on, since the start
  uint64_t explore_from_ = 0;
};

}  // namespace foretoken
