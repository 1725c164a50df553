#pragma once
#include <foretoken/limits.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "group/rank_link.h"
#include "group/wake_bell.h"

namespace foretoken::group {

// How often a step goes through the layers of a drafter, and with how many rows at most: once to
// catch entries up, and again for each further draft.
struct DraftPassesWish {
  uint32_t num_draft_tokens = 0;
  uint32_t catch_up_rows = 0;  // 0: it goes through none
  uint32_t spans = 0;          // rows of each further pass
  bool operator==(const DraftPassesWish&) const = default;
};

// The shape of one step, as far as ranks that share layers must run it alike: how often it goes
// through these, and with how many rows at most, by which kernels and scratch are bounded. What
// else is in it, and how many rows there are, is each rank's own.
struct StepShapeWish {
  uint32_t rows = 0;       // token rows in the rank's bucket; 0: it has nothing to run
  uint32_t lane_rows = 0;  // of each of two lanes; 0: one lane
  bool without_graph = false;
  std::array<DraftPassesWish, kMaxDrafters> drafts{};
  bool has_work = false;    // steps of it have not ended
  bool wants_end = false;   // the rank would leave
  bool wants_rest = false;  // it has nothing to run and would give its memory away
  bool rests = false;       // its memory may be away
  bool operator==(const StepShapeWish&) const = default;
};

// What all ranks run next: the most rows and passes. Rows go in two lanes where every rank that has
// some wants that.
struct AgreedShape {
  enum class Next : uint8_t {
    kRun,    // every rank runs this shape; one without rows runs it empty
    kWait,   // nobody has anything to run before steps have ended
    kSleep,  // nobody has work: the ranks wait until one has
    kRest,   // nothing runs: every rank would rest, and nobody has work, or some rank rests still
    kEnd,    // every rank would leave, and nobody has work
  };
  Next next = Next::kRun;
  StepShapeWish shape;
};

// The rule, as a function of the wishes of all ranks: on every rank the same. Example: rank 0 has
// 12 sequences with 3 drafts each (bucket 64), rank 1 a lone prompt of 40 rows (bucket 48) without
// drafts, rank 2 nothing. All run a step of 64 rows with 3 draft passes: rank 1 leaves rows unused,
// rank 2 runs it empty.
AgreedShape agree(const std::vector<StepShapeWish>& wishes);

// Data parallel ranks that share layers agree on the shape of each step on the host, one plan
// ahead: none goes through shared layers where another does not, so that collectives inside of them
// meet. Used by the engine thread of each rank; one call a step, on a lane of its own.
class ShapeAgreement {
 public:
  // bell: of the ranks of `link`, where they are threads; null: what comes over its connections
  // wakes those that sleep.
  explicit ShapeAgreement(RankLink& link, std::shared_ptr<WakeBell> bell = nullptr);

  // What tells this rank that another one calls `next`; empty: nothing.
  void set_waker(std::function<void()> wake);

  // Every rank calls it for each step; blocks until all have. `step` is for errors.
  Result<AgreedShape> next(const StepShapeWish& mine, uint64_t step);

  // Ends the group of the ranks with `why`, and gives the reason for which it has ended, which is
  // an earlier one where there was one.
  Status fail(const Status& why);

 private:
  RankLink& link_;
  const std::shared_ptr<WakeBell> bell_;
  std::unique_ptr<NewsWatch> watch_;  // null: with a bell, or nothing can be watched
  uint64_t num_agreements_ = 0;
  std::vector<std::byte> all_;
  std::vector<StepShapeWish> wishes_;
};

}  // namespace foretoken::group
