#include "engine/model_runner.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/thread_role.h"
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
          .max_len = config.max_len + kMaxDrafts,
          .num_slots = memory.batch.num_slots,
          .hidden_size = memory.result_limits().hidden,
          .with_logprobs = memory.result_limits().max_rows > 0};
}

}  // namespace

ModelRunner::ModelRunner(Device& device, Queue& queue, Model& model, const KvCaches& kv_caches,
                         Drafter* drafter, StepMemory& memory, const ModelRunnerConfig& config)
    : queue_(queue),
      model_(model),
      kv_caches_(kv_caches),
      drafter_(drafter),
      memory_(memory),
      config_(config),
      scratch_(device, scratch_config(model, memory, config)) {
  for (int rows = 1;; rows *= 2) {
    buckets_.emplace_back().max_rows = std::min(rows, config_.max_rows);
    if (rows >= config_.max_rows) break;
  }
}

Status ModelRunner::start() {
  FT_RETURN_IF_ERROR(scratch_.take());
  if (!config_.graphs) return {};
  for (Bucket& bucket : buckets_) {
    bucket.graphs[0] = capture(bucket.max_rows, 0);
    if (bucket.graphs[0] == nullptr) {
      return internal_error("cannot capture the graph of " + std::to_string(bucket.max_rows) +
                            " rows; try --enforce-eager");
    }
  }
  return queue_.drain();
}

std::unique_ptr<Graph> ModelRunner::capture(int max_rows, uint32_t features) {
  const ForeignAllocationScope once;
  queue_.begin_capture();
  enqueue_step(max_rows, features);
  return queue_.end_capture();
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

void ModelRunner::submit(uint64_t step, int num_rows, uint32_t features) {
  FT_CHECK(features < kNumStepFeatureSets);
  if (config_.hooks.reuse_ring_entry && step > 0) {
    std::memcpy(entry_bytes(step - 1), entry_bytes(step), memory_.plan_entry_bytes);
  }
  const auto bucket = std::find_if(buckets_.begin(), buckets_.end(),
                                   [&](const Bucket& b) { return b.max_rows >= num_rows; });
  FT_CHECK(bucket != buckets_.end());
  std::unique_ptr<Graph>& graph = bucket->graphs[features];
  if (graph == nullptr && config_.graphs) graph = capture(bucket->max_rows, features);
  // A driver may allocate for each host call, inside a graph too.
  std::optional<ForeignAllocationScope> host_calls;
  if ((features & kHasProcessors) != 0) host_calls.emplace();
  if (graph != nullptr) {
    queue_.replay(*graph);
  } else {
    enqueue_step(bucket->max_rows, features);
  }
}

// A span that is not scored wants one row and its drafts' at most.
int ModelRunner::max_logits_rows(int max_rows, uint32_t features) const {
  return (features & kScoresPrompt) != 0 ? max_rows : std::min(max_rows, config_.max_logits_rows);
}

void ModelRunner::enqueue_step(int max_rows, uint32_t features) {
  enqueue_inputs(max_rows, features);
  model_.forward(queue_, memory_.tensors, memory_.batch, kv_caches_, max_rows);
  if ((features & kPools) != 0) enqueue_pooling();
  enqueue_logits(max_logits_rows(max_rows, features), features);
  enqueue_outputs(features);
}

void ModelRunner::enqueue_inputs(int max_rows, uint32_t features) {
  if (config_.hooks.upload_delay_us > 0) delay(queue_, {config_.hooks.upload_delay_us});
  upload(queue_, {.step = memory_.step_counter,
                  .ring = memory_.plan_ring,
                  .entry_bytes = memory_.plan_entry_bytes,
                  .plan = memory_.plan,
                  .limits = memory_.limits(),
                  .batch = memory_.batch});
  prepare(queue_, {.plan = memory_.plan,
                   .limits = memory_.limits(),
                   .batch = memory_.batch,
                   .tensors = memory_.tensors,
                   .max_rows = max_rows,
                   .max_logits_rows = max_logits_rows(max_rows, features)});
}

void ModelRunner::enqueue_pooling() {
  pool(queue_, {.states = model_.hidden_states(),
                .tensors = memory_.tensors,
                .batch = memory_.batch,
                .accumulators = scratch_.accumulators,
                .result = memory_.result,
                .limits = memory_.result_limits(),
                .hidden = model_.config().hidden_size,
                .dtype = model_.config().dtype});
}

void ModelRunner::enqueue_logits(int max_logits_rows, uint32_t features) {
  const bool has_processors = (features & kHasProcessors) != 0;
  const int tile = has_processors ? std::min(config_.logits_tile, config_.max_processor_rows)
                                  : config_.logits_tile;
  for (int offset = 0; offset < max_logits_rows; offset += tile) {
    const int rows = std::min(tile, max_logits_rows - offset);
    model_.logits(queue_, memory_.tensors, offset, rows, scratch_.logits);
    if (gives_logprobs(features) && (features & (kShapesLogits | kHasProcessors)) != 0) {
      keep_raw(queue_, {.logits = scratch_.logits,
                        .raw = scratch_.raw,
                        .tensors = memory_.tensors,
                        .batch = memory_.batch,
                        .row_offset = offset,
                        .max_rows = rows,
                        .vocab = model_.config().vocab_size});
    }
    if (has_processors) enqueue_processors(offset, rows);
    enqueue_sampling(offset, rows, features);
  }
}

void ModelRunner::enqueue_processors(int row_offset, int rows) {
  const int32_t vocab = model_.config().vocab_size;
  export_logits(queue_, {.logits = scratch_.logits,
                         .tensors = memory_.tensors,
                         .batch = memory_.batch,
                         .host = scratch_.host,
                         .row_offset = row_offset,
                         .max_rows = rows,
                         .vocab = vocab});
  queue_.call_host(&run_processors, scratch_.processor_call(rows));
  import_logits(queue_, {.logits = scratch_.logits,
                         .counts = memory_.tensors.counts,
                         .host = scratch_.host,
                         .row_offset = row_offset,
                         .max_rows = rows,
                         .vocab = vocab});
}

void ModelRunner::enqueue_sampling(int row_offset, int rows, uint32_t features) {
  const int32_t vocab = model_.config().vocab_size;
  if ((features & kShapesLogits) != 0) {
    shape_logits(queue_, {.logits = scratch_.logits,
                          .tensors = memory_.tensors,
                          .batch = memory_.batch,
                          .seen = scratch_.seen,
                          .row_offset = row_offset,
                          .max_rows = rows,
                          .vocab = vocab});
  }
  sample(queue_, {.logits = scratch_.logits,
                  .tensors = memory_.tensors,
                  .batch = memory_.batch,
                  .row_offset = row_offset,
                  .max_rows = rows,
                  .vocab = vocab});
  if (!gives_logprobs(features)) return;
  logprobs(queue_, {.logits = scratch_.logits,
                    .raw = scratch_.raw,
                    .tensors = memory_.tensors,
                    .params = memory_.batch.params,
                    .result = memory_.result,
                    .limits = memory_.result_limits(),
                    .row_offset = row_offset,
                    .max_rows = rows,
                    .vocab = vocab});
}

void ModelRunner::enqueue_outputs(uint32_t features) {
  commit(queue_, {.plan = memory_.plan,
                  .limits = memory_.limits(),
                  .batch = memory_.batch,
                  .tensors = memory_.tensors,
                  .result = memory_.result,
                  .result_limits = memory_.result_limits()});
  publish(queue_, {.step = memory_.step_counter,
                   .result = memory_.result,
                   .limits = memory_.result_limits(),
                   .with_logprobs = gives_logprobs(features) ? 1 : 0,
                   .with_pooled = (features & kPools) != 0 ? 1 : 0,
                   .ring = memory_.result_ring,
                   .entry_bytes = memory_.result_entry_bytes,
                   .word = memory_.published.word});
  if (drafter_ != nullptr) {
    drafter_->propose(queue_, {memory_.plan, memory_.limits(), memory_.batch, memory_.tensors});
  }
}

}  // namespace foretoken
