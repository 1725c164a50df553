#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "group/rank_link.h"

namespace foretoken::group {

// The shape of one step, as ranks that share layers must run it alike.
struct StepShapeWish {
  uint32_t rows = 0;          // token rows in the rank's bucket; 0: it has nothing to run
  uint32_t draft_passes = 0;  // of its drafters
  uint32_t features = 0;      // bits of optional parts, sampler ops among them
  bool has_work = false;      // requests that wait or run
  bool wants_end = false;     // the rank would leave
  bool operator==(const StepShapeWish&) const = default;
};

// What all ranks run next: the most rows and passes, the union of features.
struct AgreedShape {
  enum class Next : uint8_t {
    kRun,    // every rank runs this shape; one without rows runs it empty
    kSleep,  // nobody has work: the ranks wait until one has
    kEnd,    // every rank would leave, and nobody has work
  };
  Next next = Next::kRun;
  StepShapeWish shape;
};

// The rule, as a function of the wishes of all ranks: on every rank the same.
AgreedShape agree(const std::vector<StepShapeWish>& wishes);

// Data parallel ranks that share layers agree on the shape of each step on the host, one plan
// ahead: none pads, drafts or samples where another does not, so that collectives inside the shared
// layers meet. Used by the engine thread of each rank; one call a step, on a lane of its own.
class ShapeAgreement {
 public:
  explicit ShapeAgreement(RankLink& link);

  // Every rank calls it for each step; blocks until all have. `step` is for errors.
  Result<AgreedShape> next(const StepShapeWish& mine, uint64_t step);

 private:
  RankLink& link_;
  std::vector<std::byte> all_;
  std::vector<StepShapeWish> wishes_;
};

}  // namespace foretoken::group
