#include "kernels/draft/branch_drafts.h"

#include <algorithm>

#include "kernels/cpu/op_table.h"
#include "kernels/plan_layout.h"

namespace foretoken::cpu {
namespace {

// An alternative of a logits row that a branch could begin with.
struct Candidate {
  uint64_t priority = 0;
  int32_t row = 0;
  int32_t rank = 0;
  int32_t chance = 0;
};

class Branching {
 public:
  Branching(const BranchDraftsArgs& args, int32_t stamp)
      : a_(args), stamp_(stamp), num_rows_(std::min(args.counts->num_logits_rows, args.max_rows)) {}

  void run() {
    for (int j = 0; j < num_rows_; ++j) a_.slots[j] = a_.row_slot[a_.logits_rows[j]];
    int32_t branches[kMaxBranches];
    Candidate chosen[kMaxBranches];
    const int free = find_free(branches);
    const int count = choose(chosen, std::min(free, a_.max_rows - num_rows_));
    for (int i = 0; i < count; ++i) begin(branches[i], chosen[i], num_rows_ + i);
    for (int j = 0; j < num_rows_; ++j) go_on(j);
    a_.counts->num_logits_rows = num_rows_ + count;
  }

 private:
  const DraftAlternative& alternative(int row, int rank) const {
    return a_.alternatives[int64_t{row} * (kDraftAlternatives + 1) + rank];
  }
  int32_t chance_before(int row) const {
    return a_.pass == 0 ? kSureDraft : a_.batch.slots[a_.slots[row]].branch.chance;
  }

  int find_free(int32_t* branches) const {
    int count = 0;
    const int32_t first = first_branch(a_.batch);
    for (int32_t b = first; b < first + a_.max_branches; ++b) {
      if (!follows(a_.batch, b)) branches[count++] = b;
    }
    return count;
  }

  // The alternative with the highest priority below `bound`; none: priority 0.
  Candidate next(uint64_t bound) const {
    Candidate best;
    for (int j = 0; j < num_rows_; ++j) {
      if (a_.sampled[j] < 0 || !may_branch(a_.batch.params[a_.slots[j]])) continue;
      for (int rank = 0; rank < kDraftAlternatives; ++rank) {
        const DraftAlternative& other = alternative(j, 1 + rank);
        const int32_t chance = chance_of_both(chance_before(j), other.chance);
        if (other.id < 0 || chance < a_.min_chance) continue;
        const uint64_t priority = branch_priority(chance, j, rank);
        if (priority < bound && priority > best.priority) best = {priority, j, rank, chance};
      }
    }
    return best;
  }

  int choose(Candidate* chosen, int most) const {
    uint64_t bound = UINT64_MAX;
    int count = 0;
    while (count < most) {
      chosen[count] = next(bound);
      bound = chosen[count].priority;
      if (bound == 0) break;
      ++count;
    }
    return count;
  }

  void begin(int32_t branch, const Candidate& from, int row) const {
    begin_branch(a_.batch, branch, a_.slots[from.row], a_.pass, stamp_, from.chance);
    a_.slots[row] = branch;
    a_.logits_rows[row] = a_.logits_rows[from.row];
    a_.sampled[row] = alternative(from.row, 1 + from.rank).id;
  }

  void go_on(int row) const {
    a_.batch.slots[a_.slots[row]].branch.chance =
        chance_of_both(chance_before(row), alternative(row, 0).chance);
  }

  const BranchDraftsArgs& a_;
  const int32_t stamp_;
  const int num_rows_;
};

}  // namespace

void branch_drafts(const void* args, CpuPool&) {
  const auto& a = *static_cast<const BranchDraftsArgs*>(args);
  const PlanView plan = plan_view(const_cast<void*>(a.plan), a.limits);
  Branching(a, static_cast<int32_t>(plan.header->step + 1)).run();
}

}  // namespace foretoken::cpu
