#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "draft/parts/drafter.h"
#include "engine/step/shape/graph_mode.h"
#include "kernels/attention/attention.h"
#include "sched/step_plan.h"

namespace foretoken {

// Which part of a step a stage runs at once (Stages). The last stage begins a step when the first
// one can have its rows, and finishes it when the hidden states come back.
enum class StepPart : uint8_t { kWhole, kBegin, kFinish };

// The bounds that the ops of a step are enqueued with; a graph serves every step of its shape.
struct StepShape {
  int max_rows = 0;       // token rows
  int lane_rows = 0;      // of each of two lanes; 0: they are in one
  uint32_t features = 0;  // StepFeature bits
  StepLaunch launch = StepLaunch::kOps;
  RunLengths runs = RunLengths::kShort;
  StepPart part = StepPart::kWhole;
  // By drafter; nothing is enqueued for one whose shape is that of `DraftShape{}`.
  std::array<DraftShape, kMaxDrafters> drafts{};
  bool operator==(const StepShape&) const = default;
};

// From how many rows on a step of two sequences or more goes in two lanes (dual batch overlap).
// Steps with adapters do not, nor those that run in pieces.
struct LaneConfig {
  bool enabled = false;
  int decode_rows = 0;   // where every sequence decodes
  int prefill_rows = 0;  // where a prompt is computed
};

// Of a plan whose spans are scheduled; never kUnknown.
RunLengths runs_of(const StepPlan& plan);

struct StepShapeHash {
  size_t operator()(const StepShape& shape) const;
};

// Rounds the bounds of plans up, so that few graphs serve all steps: rows to the sizes of the
// configuration or to powers of two, 192 and 384, other bounds to powers of two, at most their
// largest values.
class StepShapes {
 public:
  StepShapes(int max_rows, int max_spans, int max_catch_up_rows,
             const std::vector<Drafter*>& drafters, const GraphConfig& graphs = {},
             const LaneConfig& lanes = {});

  StepShape of(const StepPlan& plan) const;
  DraftShape of(const DraftUse& use, const DrafterTraits& traits) const;
  // Of steps in which 1, 2, 4, ... sequences decode with all drafts of one drafter, and there are
  // enough rows for that.
  std::vector<StepShape> of_decoding(int drafter) const;
  // Of steps in which 1, 2, 4, ... sequences have fewer drafts of one without KV, all of which it
  // makes in one pass, and others may have none: what it finds brings any number of them.
  std::vector<StepShape> of_fewer_drafts(int drafter) const;
  // Those that are recorded at start: plain sampling for each number of rows, `of_decoding` of
  // each drafter and `of_fewer_drafts`, and plain decoding without lessons.
  std::vector<StepShape> usual() const;
  // The configured sizes, and above them powers of two, 192 and 384 up to max_rows.
  const std::vector<int>& row_buckets() const { return row_buckets_; }

 private:
  int row_bucket(int rows) const;
  int lane_rows(const StepPlan& plan) const;
  // Of so many rows in spans of `rows_each`.
  int usual_lane_rows(int rows, int rows_each, bool decodes) const;
  bool splits(int rows, bool decodes) const;
  StepLaunch launch_of(int rows, bool decodes) const;
  int max_decoding_rows() const;
  // Of plain decoding steps that do not teach.
  std::vector<StepShape> without_lessons() const;
  // Drafters that learn see steps too in which they draft nothing.
  void call_learners(StepShape& shape) const;
  // Whether they see it: not every plain one, but each in which a sequence reaches its length, as
  // nothing is learnt of a sequence behind its end.
  bool teaches(const StepPlan& plan) const;

  const GraphMode mode_;
  const LaneConfig lanes_;
  int max_graph_rows_;
  const int max_rows_;
  const int max_spans_;
  const int max_catch_up_rows_;
  const int steps_between_lessons_;
  std::vector<DrafterTraits> traits_;
  std::vector<int> row_buckets_;
};

}  // namespace foretoken
