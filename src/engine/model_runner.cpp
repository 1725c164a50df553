#include "engine/model_runner.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/thread_role.h"
#include "kernels/choose_lengths.h"
#include "kernels/commit.h"
#include "kernels/delay.h"
#include "kernels/host_logits.h"
#include "kernels/keep_raw.h"
#include "kernels/logprobs.h"
#include "kernels/plan_layout.h"
#include "kernels/pool.h"
#include "kernels/prepare.h"
#include "kernels/publish.h"
#include "kernels/sample.h"
#include "kernels/shape_logits.h"
#include "kernels/stamp.h"
#include "kernels/token_masks.h"
#include "kernels/upload.h"

namespace foretoken {
namespace {

// Whether the step fills ResultView::rows.
bool gives_logprobs(uint32_t features) {
  return (features & (kWantsLogprobs | kScoresPrompt)) != 0;
}

StepScratchConfig scratch_config(const Model& model, const StepMemory& memory,
                                 const ModelRunnerConfig& config) {
  return {.vocab_size = model.config().vocab_size,
          .logits_tile = config.logits_tile,
          .max_processor_rows = std::min(config.max_processor_rows, config.logits_tile),
          .max_rows = config.max_rows,
          .max_len = config.max_len + kMaxDrafts,
          .num_slots = memory.batch.num_slots,
          .hidden_size = memory.result_limits().hidden,
          .with_logprobs = memory.result_limits().max_rows > 0,
          .max_mask_spans = config.with_grammars ? memory.limits().max_spans : 0,
          .mask_rows_each = config.max_drafts + 1};
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
              config.graphs),
      scratch_(device, scratch_config(model, memory, config)),
      graphs_(queue) {
  FT_CHECK(drafters_.size() <= kMaxDrafters);
}

Status ModelRunner::start() {
  FT_RETURN_IF_ERROR(scratch_.take());
  if (config_.synthetic) {
    std::copy(config_.synthetic_chances.begin(), config_.synthetic_chances.end(),
              scratch_.synthetic_host);
    queue_.copy(scratch_.synthetic, scratch_.synthetic_host, sizeof(config_.synthetic_chances));
  }
  return queue_.drain();
}

Status ModelRunner::capture_usual_steps() {
  for (const StepShape& shape : shapes_.usual()) (void)recording_of(shape);
  return queue_.drain();
}

Status ModelRunner::set_step_times(const StepTimes* times) {
  FT_RETURN_IF_ERROR(queue_.drain());
  graphs_.forget_drafts();
  step_times_ = times;
  if (times == nullptr) return {};
  const std::vector<int32_t> row_ns = times->row_ns(config_.max_rows);
  FT_CHECK(static_cast<int>(row_ns.size()) == config_.max_rows + 1);
  std::copy(row_ns.begin(), row_ns.end(), scratch_.row_ns_host);
  queue_.copy(scratch_.row_ns, scratch_.row_ns_host, row_ns.size() * sizeof(int32_t));
  return queue_.drain();
}

int32_t ModelRunner::draft_ns(int index, const DraftShape& shape) const {
  if (step_times_ == nullptr) return 0;
  const int64_t ns =
      step_times_->draft_ns(index, {shape.num_passes, shape.max_catch_up_rows, shape.max_spans});
  return static_cast<int32_t>(std::min<int64_t>(ns, INT32_MAX));
}

const Recording* ModelRunner::recording_of(const StepShape& shape) {
  return graphs_.get(shape, [&](Queue& queue) { enqueue_step(queue, shape); });
}

std::optional<Recording> ModelRunner::record_proposal(const StepPlan& plan) {
  const StepShape shape = shapes_.of(plan);
  if (shape.launch == StepLaunch::kOps) return std::nullopt;
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
  FT_CHECK(plan.features < kNumStepFeatureSets);
  if (config_.hooks.reuse_ring_entry && plan.step > 0) {
    std::memcpy(entry_bytes(plan.step - 1), entry_bytes(plan.step), memory_.plan_entry_bytes);
  }
  const StepShape shape = shapes_.of(plan);
  const Recording* recording = recording_of(shape);
  // A driver may allocate for each host call, inside a graph too.
  std::optional<ForeignAllocationScope> host_calls;
  if ((plan.features & kHasProcessors) != 0) host_calls.emplace();
  if (recording != nullptr) {
    recording->replay(queue_);
  } else {
    enqueue_step(queue_, shape);
  }
}

// A span that is not scored wants one row and its drafts' at most.
int ModelRunner::max_logits_rows(const StepShape& shape) const {
  return (shape.features & kScoresPrompt) != 0 ? shape.max_rows
                                               : std::min(shape.max_rows, config_.max_logits_rows);
}

void ModelRunner::enqueue_step(Queue& queue, const StepShape& shape) {
  enqueue_inputs(queue, shape);
  if ((shape.features & kHasGrammar) != 0) {
    export_spans(queue, {.counts = memory_.tensors.counts,
                         .spans = memory_.tensors.spans,
                         .batch = memory_.batch,
                         .exchange = scratch_.masks,
                         .ticket = scratch_.mask_ticket,
                         .drafter = kVerifying});
  }
  model_.forward(queue, memory_.tensors, memory_.batch, kv_caches_, shape.max_rows, shape.runs);
  if ((shape.features & kPools) != 0) enqueue_pooling(queue, shape.max_rows);
  if ((shape.features & kHasGrammar) != 0) enqueue_mask_wait(queue);
  enqueue_logits(queue, shape);
  enqueue_outputs(queue, shape.features);
  enqueue_drafts(queue, shape);
}

void ModelRunner::enqueue_inputs(Queue& queue, const StepShape& shape) {
  if (config_.hooks.upload_delay_us > 0) delay(queue, {config_.hooks.upload_delay_us});
  upload(queue, {.step = memory_.step_counter,
                 .ring = memory_.plan_ring,
                 .entry_bytes = memory_.plan_entry_bytes,
                 .plan = memory_.plan,
                 .limits = memory_.limits(),
                 .batch = memory_.batch,
                 .stamps = memory_.stamps});
  prepare(queue, {.plan = memory_.plan,
                  .limits = memory_.limits(),
                  .batch = memory_.batch,
                  .tensors = memory_.tensors,
                  .max_rows = shape.max_rows,
                  .max_logits_rows = max_logits_rows(shape)});
}

void ModelRunner::enqueue_mask_wait(Queue& queue) {
  await_masks(queue, {.counts = memory_.tensors.counts,
                      .spans = memory_.tensors.spans,
                      .slots = memory_.batch.slots,
                      .params = memory_.batch.params,
                      .exchange = scratch_.masks,
                      .ticket = scratch_.mask_ticket,
                      .budget_ns = config_.mask_budget_ns,
                      .drafter = kVerifying});
}

void ModelRunner::enqueue_pooling(Queue& queue, int max_rows) {
  pool(queue, {.states = model_.hidden_states(queue, memory_.tensors, max_rows),
               .tensors = memory_.tensors,
               .batch = memory_.batch,
               .accumulators = scratch_.accumulators,
               .result = memory_.result,
               .limits = memory_.result_limits(),
               .hidden = model_.config().hidden_size,
               .dtype = model_.config().dtype});
}

void ModelRunner::enqueue_logits(Queue& queue, const StepShape& shape) {
  const uint32_t features = shape.features;
  const int num_rows = max_logits_rows(shape);
  const bool has_processors = (features & kHasProcessors) != 0;
  const int tile = has_processors ? std::min(config_.logits_tile, config_.max_processor_rows)
                                  : config_.logits_tile;
  for (int offset = 0; offset < num_rows; offset += tile) {
    const int rows = std::min(tile, num_rows - offset);
    model_.logits(queue, memory_.tensors, offset, rows, scratch_.logits);
    if (gives_logprobs(features) &&
        (features & (kShapesLogits | kHasProcessors | kHasGrammar)) != 0) {
      keep_raw(queue, {.logits = scratch_.logits,
                       .raw = scratch_.raw,
                       .tensors = memory_.tensors,
                       .batch = memory_.batch,
                       .row_offset = offset,
                       .max_rows = rows,
                       .vocab = model_.config().vocab_size});
    }
    if (has_processors) enqueue_processors(queue, offset, rows);
    enqueue_sampling(queue, offset, rows, features);
  }
}

void ModelRunner::enqueue_processors(Queue& queue, int row_offset, int rows) {
  const int32_t vocab = model_.config().vocab_size;
  export_logits(queue, {.logits = scratch_.logits,
                        .tensors = memory_.tensors,
                        .batch = memory_.batch,
                        .host = scratch_.host,
                        .row_offset = row_offset,
                        .max_rows = rows,
                        .vocab = vocab});
  queue.call_host(&run_processors, scratch_.processor_call(rows));
  import_logits(queue, {.logits = scratch_.logits,
                        .counts = memory_.tensors.counts,
                        .host = scratch_.host,
                        .row_offset = row_offset,
                        .max_rows = rows,
                        .vocab = vocab});
}

void ModelRunner::enqueue_sampling(Queue& queue, int row_offset, int rows, uint32_t features) {
  const int32_t vocab = model_.config().vocab_size;
  if ((features & kShapesLogits) != 0) {
    shape_logits(queue, {.logits = scratch_.logits,
                         .tensors = memory_.tensors,
                         .batch = memory_.batch,
                         .seen = scratch_.seen,
                         .row_offset = row_offset,
                         .max_rows = rows,
                         .vocab = vocab});
  }
  if ((features & kHasGrammar) != 0) {
    apply_masks(queue, {.logits = scratch_.logits,
                        .tensors = memory_.tensors,
                        .slots = memory_.batch.slots,
                        .params = memory_.batch.params,
                        .masks = scratch_.masks.masks,
                        .mask_words = scratch_.masks.mask_words,
                        .row_offset = row_offset,
                        .max_rows = rows,
                        .vocab = vocab});
  }
  sample(queue, {.logits = scratch_.logits,
                 .tensors = memory_.tensors,
                 .batch = memory_.batch,
                 .row_offset = row_offset,
                 .max_rows = rows,
                 .vocab = vocab});
  if (!gives_logprobs(features)) return;
  logprobs(queue, {.logits = scratch_.logits,
                   .raw = scratch_.raw,
                   .tensors = memory_.tensors,
                   .params = memory_.batch.params,
                   .result = memory_.result,
                   .limits = memory_.result_limits(),
                   .row_offset = row_offset,
                   .max_rows = rows,
                   .vocab = vocab});
}

void ModelRunner::enqueue_outputs(Queue& queue, uint32_t features) {
  commit(queue, {.plan = memory_.plan,
                 .limits = memory_.limits(),
                 .batch = memory_.batch,
                 .tensors = memory_.tensors,
                 .result = memory_.result,
                 .result_limits = memory_.result_limits(),
                 .synthetic = config_.synthetic ? scratch_.synthetic : nullptr,
                 .drop_bonus = config_.hooks.drop_bonus ? 1 : 0});
  publish(queue, {.step = memory_.step_counter,
                  .result = memory_.result,
                  .limits = memory_.result_limits(),
                  .with_logprobs = gives_logprobs(features) ? 1 : 0,
                  .with_pooled = (features & kPools) != 0 ? 1 : 0,
                  .ring = memory_.result_ring,
                  .entry_bytes = memory_.result_entry_bytes,
                  .word = memory_.published.word,
                  .stamps = memory_.stamps});
}

void ModelRunner::enqueue_drafts(Queue& queue, const StepShape& shape) {
  bool any = false;
  for (size_t i = 0; i < drafters_.size(); ++i) {
    if (shape.drafts[i] == DraftShape{}) continue;
    enqueue_drafter(queue, static_cast<int>(i), shape);
    any = true;
  }
  if (any) stamp(queue, {memory_.step_counter, memory_.stamps});
}

void ModelRunner::enqueue_drafter(Queue& queue, int index, const StepShape& step) {
  Drafter& drafter = *drafters_[static_cast<size_t>(index)];
  const DraftShape& shape = step.drafts[static_cast<size_t>(index)];
  choose_lengths(queue, {.plan = memory_.plan,
                         .limits = memory_.limits(),
                         .batch = memory_.batch,
                         .spans = memory_.tensors.spans,
                         .result = memory_.result,
                         .result_limits = memory_.result_limits(),
                         .row_ns = step_times_ != nullptr ? scratch_.row_ns : nullptr,
                         .num_row_ns = step_times_ != nullptr ? config_.max_rows + 1 : 0,
                         .draft_ns = draft_ns(index, shape),
                         .drafter = index,
                         .draft_max_len = drafter.traits().max_len});
  drafter.propose(queue,
                  {.plan = memory_.plan,
                   .limits = memory_.limits(),
                   .batch = memory_.batch,
                   .tensors = memory_.tensors,
                   .index = index,
                   .masks = draft_masks(step)},
                  shape);
}

DraftMasks ModelRunner::draft_masks(const StepShape& shape) const {
  if ((shape.features & kHasGrammar) == 0) return {};
  return {.exchange = scratch_.masks,
          .ticket = scratch_.mask_ticket,
          .budget_ns = std::min(config_.mask_budget_ns, kDraftMaskBudgetNs)};
}

// One of the step itself, and one of each pass that drafts.
int ModelRunner::num_mask_tickets(const StepPlan& plan) const {
  const StepShape shape = shapes_.of(plan);
  if ((shape.features & kHasGrammar) == 0) return 0;
  int count = 1;
  for (const DraftShape& drafts : shape.drafts) {
    if (drafts.max_catch_up_rows > 0) count += drafts.num_passes;
  }
  return count;
}

int64_t ModelRunner::device_bytes(const Model& model, const StepMemoryConfig& memory,
                                  const ModelRunnerConfig& config) {
  const std::unique_ptr<StepMemory> counted = StepMemory::count(memory);
  return counted->device_bytes() +
         StepScratch::device_bytes(scratch_config(model, *counted, config));
}

}  // namespace foretoken
