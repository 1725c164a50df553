#include "engine/step/model_runner.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "device/device_traits.h"
#include "kernels/comm/stage_exchange.h"
#include "kernels/plan_layout.h"
#include "kernels/step/prepare.h"
#include "kernels/step/upload.h"

namespace foretoken {
namespace {

// Step times by how many sequences draft, in powers of two, and how many drafts each has room for.
int row_table(int num_spans, int num_draft_tokens, int max_draft_tokens) {
  const auto power = std::countr_zero(std::bit_ceil(static_cast<unsigned>(std::max(num_spans, 1))));
  return power * max_draft_tokens + std::clamp(num_draft_tokens, 1, max_draft_tokens) - 1;
}

int num_row_tables(int max_spans, int max_draft_tokens) {
  return max_draft_tokens > 0 ? row_table(max_spans, max_draft_tokens, max_draft_tokens) + 1 : 1;
}

GraphConfig graphs_on(Device& device, GraphConfig graphs) {
  graphs.steps_between_lessons = device_traits(device.type()).steps_between_lessons;
  return graphs;
}

StepScratchConfig scratch_config(const Model& model, const StepMemory& memory,
                                 const ModelRunnerConfig& config) {
  if (!config.stages.is_last()) return {};
  return {.vocab_size = model.config().vocab_size,
          .logits_tile = config.logits_tile,
          .max_processor_rows =
              config.has_processors ? std::min(config.max_processor_rows, config.logits_tile) : 0,
          .max_rows = config.max_rows,
          .max_len = config.max_len + config.max_draft_tokens,
          .num_slots = memory.batch.num_slots,
          .num_row_tables = num_row_tables(memory.limits().max_spans, config.max_draft_tokens),
          .hidden_size = memory.result_limits().hidden,
          .with_logprobs = memory.result_limits().max_rows > 0,
          .max_mask_spans = config.with_grammars ? memory.limits().max_spans : 0,
          .mask_rows_each = config.max_draft_tokens + 1};
}

}  // namespace

ModelRunner::ModelRunner(Device& device, Queue& queue, Model& model, const KvCaches& kv_caches,
                         std::vector<Drafter*> drafters, StepMemory& memory,
                         const ModelRunnerConfig& config)
    : queue_(queue),
      model_(model),
      kv_caches_(kv_caches),
      drafters_(std::move(drafters)),
      memory_(memory),
      config_(config),
      shapes_(config.max_rows, memory.limits().max_spans, config.max_catch_up_rows, drafters_,
              graphs_on(device, config.graphs), config.lanes),
      scratch_(device, scratch_config(model, memory, config)),
      device_(device),
      branch_arena_(device, MemoryKind::kDevice),
      graphs_(queue) {
  FT_CHECK(drafters_.size() <= kMaxDrafters);
}

Status ModelRunner::start() {
  FT_RETURN_IF_ERROR(scratch_.take());
  FT_RETURN_IF_ERROR(take_branch_parts());
  if (config_.synthetic && config_.stages.is_last()) {
    std::copy(config_.synthetic_chances.begin(), config_.synthetic_chances.end(),
              scratch_.synthetic_host);
    queue_.copy(scratch_.synthetic, scratch_.synthetic_host, sizeof(config_.synthetic_chances));
  }
  return queue_.drain();
}

Status ModelRunner::take_branch_parts() {
  if (memory_.batch.num_branches == 0) return {};
  const auto take = [&](const std::vector<BlockPart>& parts, BranchParts* out) -> Status {
    if (parts.empty()) return {};
    const size_t bytes = parts.size() * sizeof(BlockPart);
    FT_ASSIGN_OR_RETURN(BlockPart * memory,
                        branch_arena_.take_array<BlockPart>(parts.size(), "parts of blocks"));
    Arena staging(device_, MemoryKind::kPinned);
    FT_ASSIGN_OR_RETURN(void* pinned, staging.take(bytes, "parts of blocks"));
    std::memcpy(pinned, parts.data(), bytes);
    queue_.copy(memory, pinned, bytes);
    *out = {memory, static_cast<int32_t>(parts.size())};
    return queue_.drain();
  };
  FT_RETURN_IF_ERROR(take(config_.block_parts, &branch_parts_));
  return take(config_.window_block_parts, &branch_window_parts_);
}

Status ModelRunner::capture_usual_steps() {
  const bool begins = config_.stages.is_cut();
  for (StepShape shape : shapes_.usual()) {
    if (begins) (void)recording_of(begun(shape));
    if (begins && !config_.stages.is_last()) continue;
    if (begins) shape.part = StepPart::kFinish;
    (void)recording_of(shape);
  }
  return queue_.drain();
}

Status ModelRunner::set_step_times(const CostTable* times) {
  FT_RETURN_IF_ERROR(queue_.drain());
  graphs_.forget_drafts();
  step_times_ = times;
  hides_step_times_ = false;
  if (times == nullptr || !config_.stages.is_last()) return {};
  FT_CHECK(config_.max_draft_tokens > 0);
  const size_t length = static_cast<size_t>(config_.max_rows) + 1;
  const int max_spans = memory_.limits().max_spans;
  size_t num_values = 0;
  for (int spans = 1;; spans = std::min(spans * 2, max_spans)) {
    for (int drafts = 1; drafts <= config_.max_draft_tokens; ++drafts) {
      const std::vector<int32_t> row_ns = times->row_ns(spans, drafts, config_.max_rows);
      FT_CHECK(row_ns.size() == length);
      const auto table = static_cast<size_t>(row_table(spans, drafts, config_.max_draft_tokens));
      std::copy(row_ns.begin(), row_ns.end(), scratch_.row_ns_host + table * length);
      num_values = (table + 1) * length;
    }
    if (spans == max_spans) break;
  }
  queue_.copy(scratch_.row_ns, scratch_.row_ns_host, num_values * sizeof(int32_t));
  return queue_.drain();
}

Status ModelRunner::hide_step_times(bool hides) {
  FT_RETURN_IF_ERROR(queue_.drain());
  graphs_.forget_drafts();
  hides_step_times_ = hides;
  return {};
}

const int32_t* ModelRunner::row_ns(const DraftShape& shape) const {
  if (times_in_use() == nullptr) return nullptr;
  const int table = row_table(shape.max_spans, shape.num_draft_tokens, config_.max_draft_tokens);
  return scratch_.row_ns + int64_t{table} * (config_.max_rows + 1);
}

int32_t ModelRunner::draft_ns(int index, const DraftShape& shape) const {
  if (times_in_use() == nullptr) return 0;
  const int64_t ns = step_times_->draft_ns(
      index, {shape.num_draft_tokens, shape.max_catch_up_rows, shape.max_spans});
  return static_cast<int32_t>(std::min<int64_t>(ns, INT32_MAX));
}

const Recording* ModelRunner::recording_of(const StepShape& shape) {
  return graphs_.get(shape, [&](Queue& queue) { enqueue_step(queue, shape); });
}

std::optional<Recording> ModelRunner::record_proposal(const StepPlan& plan) {
  const StepShape shape = shapes_.of(plan);
  if (shape.launch == StepLaunch::kOps || !config_.stages.is_last()) return std::nullopt;
  return graphs_.record(shape.launch, [&](Queue& queue) { enqueue_drafts(queue, shape); });
}

PlanView ModelRunner::entry(uint64_t step) const {
  return plan_view(entry_bytes(step), memory_.limits());
}

ResultView ModelRunner::result(uint64_t step) const {
  return result_view(memory_.result_ring + step % kStepRingSize * memory_.result_entry_bytes,
                     memory_.result_limits());
}

char* ModelRunner::entry_bytes(uint64_t step) const {
  return memory_.plan_ring + step % kStepRingSize * memory_.plan_entry_bytes;
}

void ModelRunner::submit(const StepPlan& plan) {
  const StepShape shape = shapes_.of(plan);
  begin(plan.step, shape);
  finish(shape);
}

// What its rows depend on.
StepShape ModelRunner::begun(StepShape shape) const {
  shape.part = StepPart::kBegin;
  shape.drafts = {};
  shape.features &= kScoresPrompt | kForwardFeatures;
  return shape;
}

void ModelRunner::begin(uint64_t step, StepShape shape) {
  if (config_.hooks.reuse_ring_entry && step > 0) {
    std::memcpy(entry_bytes(step - 1), entry_bytes(step), memory_.plan_entry_bytes);
  }
  run(config_.stages.is_cut() ? begun(shape) : shape);
}

void ModelRunner::finish(StepShape shape) {
  if (!config_.stages.is_cut() || !config_.stages.is_last()) return;
  shape.part = StepPart::kFinish;
  run(shape);
}

void ModelRunner::run(const StepShape& shape) {
  FT_CHECK(shape.features < kNumStepFeatureSets);
  const Recording* recording = recording_of(shape);
  // A driver may allocate for each host call, inside a graph too.
  std::optional<ForeignAllocationScope> host_calls;
  if ((shape.features & kHasProcessors) != 0) host_calls.emplace();
  if (recording != nullptr) {
    recording->replay(queue_);
  } else {
    enqueue_step(queue_, shape);
  }
}

// Of each lane.
int ModelRunner::forward_rows(const StepShape& shape) {
  return shape.lane_rows > 0 ? shape.lane_rows : shape.max_rows;
}

// Where the second lane begins; 0: there is one.
int32_t ModelRunner::lane_offset(const StepShape& shape) const {
  return shape.lane_rows > 0 ? config_.max_rows : 0;
}

// A span that is not scored wants one row and its drafts' at most.
int ModelRunner::max_logits_rows(const StepShape& shape) const {
  return (shape.features & kScoresPrompt) != 0 ? shape.max_rows
                                               : std::min(shape.max_rows, config_.max_logits_rows);
}

void ModelRunner::enqueue_step(Queue& queue, const StepShape& shape) {
  if (shape.part != StepPart::kBegin) {
    enqueue_upload(queue, shape.part);
    enqueue_prepare(queue, shape);
    enqueue_rest(queue, shape);
  } else if (config_.stages.is_last()) {
    enqueue_begin(queue, shape);
  } else {
    enqueue_stage(queue, shape);
  }
}

void ModelRunner::enqueue_inputs(Queue& queue, const StepShape& shape) {
  enqueue_upload(queue, StepPart::kWhole);
  enqueue_prepare(queue, shape);
}

// A step that began before has brought everything but what the next one's took the place of.
void ModelRunner::enqueue_upload(Queue& queue, StepPart part) {
  const bool begins = part == StepPart::kBegin && config_.stages.is_last();
  upload(queue, {.step = begins ? memory_.begun_counter : memory_.step_counter,
                 .ring = memory_.plan_ring,
                 .entry_bytes = memory_.plan_entry_bytes,
                 .plan = memory_.plan,
                 .limits = memory_.limits(),
                 .batch = memory_.batch,
                 .only_spans = part == StepPart::kFinish ? 1 : 0,
                 .stamps = begins ? nullptr : memory_.stamps});
}

void ModelRunner::enqueue_prepare(Queue& queue, const StepShape& shape) {
  prepare(queue, {.plan = memory_.plan,
                  .limits = memory_.limits(),
                  .batch = memory_.batch,
                  .tensors = memory_.tensors,
                  .max_rows = shape.max_rows,
                  .max_logits_rows = max_logits_rows(shape),
                  .lane_rows = shape.lane_rows,
                  .lane_offset = config_.max_rows});
}

// The slots of a step are in none that is between its two parts, so that its rows are found again
// when it is finished.
void ModelRunner::enqueue_begin(Queue& queue, const StepShape& shape) {
  enqueue_upload(queue, shape.part);
  enqueue_prepare(queue, shape);
  send_step(queue, {.comm = config_.stages.comm,
                    .tensors = memory_.tensors,
                    .max_rows = forward_rows(shape),
                    .counter = memory_.begun_counter,
                    .lane_offset = lane_offset(shape)});
}

void ModelRunner::enqueue_forward(Queue& queue, const StepShape& shape) {
  const uint32_t features = shape.features;
  const AdapterUse adapters = (features & kHasAdapters) == 0 ? AdapterUse::kNone
                              : (features & kAdaptsMlp) == 0 ? AdapterUse::kMixers
                                                             : AdapterUse::kLayers;
  model_.forward(queue, memory_.tensors, memory_.batch, kv_caches_,
                 {.max_rows = forward_rows(shape),
                  .runs = shape.runs,
                  .adapters = adapters,
                  .in_lanes = shape.lane_rows > 0,
                  .adapts_ends = (features & kAdaptsEnds) != 0});
}

// Of the plan only the block tables matter here; the rows come from the stage that samples.
void ModelRunner::enqueue_stage(Queue& queue, const StepShape& shape) {
  enqueue_upload(queue, shape.part);
  receive_step(queue, {.comm = config_.stages.comm,
                       .tensors = memory_.tensors,
                       .max_rows = forward_rows(shape),
                       .num_slots = memory_.batch.num_slots,
                       .step = memory_.step_counter,
                       .stamps = memory_.stamps,
                       .lane_offset = lane_offset(shape)});
  if (config_.stages.rank + 2 < config_.stages.count) {
    send_step(queue, {.comm = config_.stages.comm,
                      .tensors = memory_.tensors,
                      .max_rows = forward_rows(shape),
                      .counter = nullptr,
                      .lane_offset = lane_offset(shape)});
  }
  enqueue_forward(queue, shape);
  enqueue_publish(queue, 0);
}

void ModelRunner::enqueue_rest(Queue& queue, const StepShape& shape) {
  if ((shape.features & kHasGrammar) != 0) {
    enqueue_mask_post(queue, kVerifying, 0);
  }
  enqueue_forward(queue, shape);
  if ((shape.features & kPools) != 0) enqueue_pooling(queue, forward_rows(shape));
  if ((shape.features & kHasGrammar) != 0) {
    if (config_.has_masks) enqueue_mask_wait(queue, kVerifying, config_.mask_budget_ns, false);
    if (config_.comm != nullptr) enqueue_mask_share(queue, shape.max_rows);
  }
  enqueue_logits(queue, shape);
  enqueue_outputs(queue, shape.features);
  enqueue_drafts(queue, shape);
}

int64_t ModelRunner::device_bytes(const Model& model, const StepMemoryConfig& memory,
                                  const ModelRunnerConfig& config) {
  const std::unique_ptr<StepMemory> counted = StepMemory::count(memory);
  return counted->device_bytes() +
         StepScratch::device_bytes(scratch_config(model, *counted, config));
}

}  // namespace foretoken
