#include "engine/step/model_runner.h"

#include <algorithm>

#include "kernels/comm/collectives.h"
#include "kernels/comm/shared_sampling.h"
#include "kernels/rows/pool.h"
#include "kernels/sampling/host_logits.h"
#include "kernels/sampling/keep_raw.h"
#include "kernels/sampling/logprobs.h"
#include "kernels/sampling/sample.h"
#include "kernels/sampling/shape_logits.h"
#include "kernels/sampling/token_masks.h"
#include "kernels/step/copy_branches.h"
#include "kernels/step/publish.h"
#include "kernels/step/verify_and_commit.h"

namespace foretoken {
namespace {

// Whether the step fills ResultView::rows.
bool gives_logprobs(uint32_t features) {
  return (features & (kWantsLogprobs | kScoresPrompt)) != 0;
}

// Up to so many rows it takes no longer to bring all logits to every rank.
constexpr int kFewLogitsRows = 8;

}  // namespace

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
    if (samples_together(rows, features)) {
      enqueue_shared_sampling(queue, offset, rows);
      continue;
    }
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

// Whether no rank looks at whole rows of logits but for what it samples of them.
bool ModelRunner::samples_together(int rows, uint32_t features) const {
  if (rows <= kFewLogitsRows || gives_logprobs(features)) return false;
  if ((features & (kShapesLogits | kHasProcessors | kHasGrammar)) != 0) return false;
  return cuts_columns(model_.config().vocab_size, model_.shared_head().sharding.size);
}

void ModelRunner::enqueue_shared_sampling(Queue& queue, int row_offset, int rows) {
  const Sharding sharding = model_.shared_head().sharding;
  const SharedLogits shared = {.comm = sharding.comm,
                               .tensors = memory_.tensors,
                               .batch = memory_.batch,
                               .part = model_.part_logits(queue, memory_.tensors, row_offset, rows),
                               .dealt = scratch_.logits,
                               .keys = scratch_.keys,
                               .row_offset = row_offset,
                               .max_rows = rows,
                               .vocab = model_.config().vocab_size,
                               .rank = sharding.rank,
                               .size = sharding.size};
  deal_logits(queue, {shared});
  sample_parts(queue, {shared});
  gather_samples(queue, {shared});
}

void ModelRunner::enqueue_processors(Queue& queue, int row_offset, int rows) {
  const int32_t vocab = model_.config().vocab_size;
  if (config_.has_processors) {
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
  if (config_.comm == nullptr) return;
  share_logits(queue, {.comm = config_.comm,
                       .logits = scratch_.logits,
                       .tensors = memory_.tensors,
                       .slots = memory_.batch.slots,
                       .params = memory_.batch.params,
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
  verify_and_commit(queue, {.plan = memory_.plan,
                            .limits = memory_.limits(),
                            .batch = memory_.batch,
                            .tensors = memory_.tensors,
                            .result = memory_.result,
                            .result_limits = memory_.result_limits(),
                            .synthetic = config_.synthetic ? scratch_.synthetic : nullptr});
  enqueue_publish(queue, features);
  if ((features & kHasBranches) == 0) return;
  copy_branches(queue, {.plan = memory_.plan,
                        .limits = memory_.limits(),
                        .batch = memory_.batch,
                        .counts = memory_.tensors.counts,
                        .spans = memory_.tensors.spans,
                        .full = branch_parts_,
                        .windowed = branch_window_parts_,
                        .pass = -1});
}

// On a stage before the last one the result stays empty.
void ModelRunner::enqueue_publish(Queue& queue, uint32_t features) {
  publish(queue, {.step = memory_.step_counter,
                  .result = memory_.result,
                  .limits = memory_.result_limits(),
                  .with_logprobs = gives_logprobs(features) ? 1 : 0,
                  .with_pooled = (features & kPools) != 0 ? 1 : 0,
                  .ring = memory_.result_ring,
                  .entry_bytes = memory_.result_entry_bytes,
                  .word = memory_.published.word,
                  .stamps = memory_.stamps,
                  .max_draft_tokens = config_.max_draft_tokens});
}

}  // namespace foretoken
