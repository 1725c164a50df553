#pragma once
#include <array>
#include <optional>
#include <vector>

#include "attention/kv_cache.h"
#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "draft/parts/drafter.h"
#include "engine/step/shape/graph_cache.h"
#include "engine/step/shape/step_shape.h"
#include "engine/step/step_memory.h"
#include "engine/step/step_scratch.h"
#include "engine/step/test_hooks.h"
#include "model/lora_pool.h"
#include "model/model.h"
#include "model/weights/stages.h"
#include "sched/step_plan.h"
#include "spec/cost_table.h"

namespace foretoken {

inline constexpr int64_t kMaskBudgetNs = 10'000'000;
// That all drafts of a branch are right, in 1/kSureDraft, as its drafter sees it. Lower, and rows
// go to branches that hardly ever win.
inline constexpr int32_t kLeastBranchChance = kSureDraft / 64;
inline constexpr int64_t kDraftMaskBudgetNs = 500'000;  // of one draft

struct ModelRunnerConfig {
  int max_rows = 0;  // token rows of the largest step
  // Logits rows of the largest step whose prompts are not scored; the others want up to max_rows.
  int max_logits_rows = 0;
  int logits_tile = 0;         // logits rows computed at once
  int max_processor_rows = 0;  // of those through logits processors at once; 0: none
  int max_len = 0;             // of the longest sequence
  int max_catch_up_rows = 0;   // of a drafter in one step
  bool with_grammars = false;  // steps may hold spans with grammars
  int max_draft_tokens = 0;    // of any drafter
  // Time that a step waits for masks, in nanoseconds. Spans without theirs pause.
  int64_t mask_budget_ns = kMaskBudgetNs;
  int64_t draft_mask_budget_ns = kDraftMaskBudgetNs;
  // Verification by the rule `synthetic`, with the chances of kernels/step/verify_and_commit.h.
  bool synthetic = false;
  std::array<uint32_t, kMaxDraftTokens> synthetic_chances{};
  GraphConfig graphs;
  LaneConfig lanes = {};
  TestHooks hooks;
  // Of a group of ranks: its communicator, and whether this rank has the masks of grammars and
  // runs logits processors, which the others then get from it.
  const void* comm = nullptr;
  bool has_masks = true;
  bool has_processors = true;
  Stages stages = {};
  // What a KV block has, all drafters' entries included, where steps may have branches.
  std::vector<BlockPart> block_parts = {};
  std::vector<BlockPart> window_block_parts = {};
  int32_t min_branch_chance = kLeastBranchChance;
};

// Runs the nine parts of a step on the queue. Knows shapes, no policy: a plan already encoded in
// ring entry (step mod kStepRingSize) and its bounds are all it needs. Engine thread.
class ModelRunner {
 public:
  // `drafters`: in the order of SlotParams::drafter; their memory is taken before `start`.
  ModelRunner(Device& device, Queue& queue, Model& model, const KvCaches& kv_caches,
              std::vector<Drafter*> drafters, StepMemory& memory, const ModelRunnerConfig& config);

  // Device memory of the step memory and the scratch of a runner for such steps.
  static int64_t device_bytes(const Model& model, const StepMemoryConfig& memory,
                              const ModelRunnerConfig& config);

  // Takes the scratch. Nothing can be submitted before.
  Status start();
  // Records the usual steps (StepShapes::usual). All others are recorded when they are first
  // needed.
  Status capture_usual_steps();

  // The costs by which drafts are chosen from here on; null: every slot gets the most that it can
  // use. `times` must outlive the runner. Forgets the graphs that draft.
  Status set_step_times(const CostTable* times);
  // Whether steps draft as without times meanwhile. Waits for what is in flight, whose graphs are
  // forgotten: a step drafts on behind its end.
  Status hide_step_times(bool hides);

  // The ring entry for a step; not in flight as long as at most kStepRingSize - 1 steps are.
  PlanView entry(uint64_t step) const;
  ResultView result(uint64_t step) const;

  // Enqueues the step of `plan`, which stands in its ring entry, without waiting. Only its number
  // and bounds are looked at.
  void submit(const StepPlan& plan);
  // The same in two parts and by the plan's shape, as a rank has it that did not make the plan. On
  // the last of several stages `begin` lets the others start, and other steps may begin before this
  // one is finished; everywhere else it is the whole step.
  void begin(uint64_t step, StepShape shape);
  void finish(StepShape shape);
  // Enqueues what brings an adapter into a place that no step in flight uses. The image outlives
  // the copies.
  void load_adapter(int slot, const LoraImage& image) {
    model_.adapters()->load(queue_, slot, image);
  }
  // Null: the model takes none.
  const LoraPool* adapters() const { return model_.adapters(); }
  StepShape shape_of(const StepPlan& plan) const { return shapes_.of(plan); }
  // For measuring: the first two parts of the step of `plan`, its part 9, and that part recorded as
  // it would be in a step; none where such a step runs op by op.
  void upload_plan(const StepPlan& plan) { enqueue_inputs(queue_, shapes_.of(plan)); }
  void propose(const StepPlan& plan) { enqueue_drafts(queue_, shapes_.of(plan)); }
  std::optional<Recording> record_proposal(const StepPlan& plan);
  // All ops of the step, into any queue.
  void enqueue(Queue& queue, const StepPlan& plan) { enqueue_step(queue, shapes_.of(plan)); }

  int num_buckets() const { return static_cast<int>(shapes_.row_buckets().size()); }
  const GraphCache& graphs() const { return graphs_; }
  int logits_tile() const { return config_.logits_tile; }
  int64_t scratch_bytes() const { return scratch_.num_bytes(); }
  // After `start`; the other side is a GrammarThread.
  const MaskExchange& mask_exchange() const { return scratch_.masks; }
  // Tickets of the exchange that a step of that shape draws.
  int num_mask_tickets(const StepShape& shape) const;

 private:
  StepShape begun(StepShape shape) const;
  void run(const StepShape& shape);
  char* entry_bytes(uint64_t step) const;
  int max_logits_rows(const StepShape& shape) const;
  static int forward_rows(const StepShape& shape);
  int32_t lane_offset(const StepShape& shape) const;
  const Recording* recording_of(const StepShape& shape);
  void enqueue_step(Queue& queue, const StepShape& shape);
  void enqueue_inputs(Queue& queue, const StepShape& shape);
  void enqueue_upload(Queue& queue, StepPart part);
  void enqueue_prepare(Queue& queue, const StepShape& shape);
  void enqueue_begin(Queue& queue, const StepShape& shape);
  void enqueue_stage(Queue& queue, const StepShape& shape);
  void enqueue_forward(Queue& queue, const StepShape& shape);
  void enqueue_rest(Queue& queue, const StepShape& shape);
  void enqueue_publish(Queue& queue, uint32_t features);
  void enqueue_pooling(Queue& queue, int max_rows);
  void enqueue_logits(Queue& queue, const StepShape& shape);
  bool samples_together(int rows, uint32_t features) const;
  void enqueue_shared_sampling(Queue& queue, int row_offset, int rows);
  void enqueue_processors(Queue& queue, int row_offset, int rows);
  void enqueue_mask_post(Queue& queue, int drafter, int num_repaired);
  void enqueue_mask_wait(Queue& queue, int drafter, int64_t budget_ns, bool repairs);
  void enqueue_mask_share(Queue& queue, int max_rows);
  void enqueue_sampling(Queue& queue, int row_offset, int rows, uint32_t features);
  void enqueue_outputs(Queue& queue, uint32_t features);
  Status take_branch_parts();
  void enqueue_drafts(Queue& queue, const StepShape& shape);
  void enqueue_drafter(Queue& queue, int index, const StepShape& step);
  void enqueue_choice(Queue& queue, int index, const StepShape& step);
  DraftMasks draft_masks(const StepShape& shape) const;
  bool repairs(const Drafter& drafter, const StepShape& step, const DraftShape& shape) const;
  void enqueue_repairs(Queue& queue, int index, int num_draft_tokens);
  int32_t draft_ns(int index, const DraftShape& shape) const;
  const int32_t* row_ns(const DraftShape& shape) const;

  Queue& queue_;
  Model& model_;
  const KvCaches kv_caches_;
  const std::vector<Drafter*> drafters_;
  StepMemory& memory_;
  const ModelRunnerConfig config_;
  const StepShapes shapes_;
  StepScratch scratch_;
  Device& device_;
  Arena branch_arena_;
  BranchParts branch_parts_{};
  BranchParts branch_window_parts_{};
  const CostTable* times_in_use() const { return hides_step_times_ ? nullptr : step_times_; }
  bool hides_step_times_ = false;
  const CostTable* step_times_ = nullptr;
  GraphCache graphs_;
};

}  // namespace foretoken
