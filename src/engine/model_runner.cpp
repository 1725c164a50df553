#include "engine/model_runner.h"

#include <algorithm>
#include <cstring>

#include "kernels/commit.h"
#include "kernels/delay.h"
#include "kernels/plan_layout.h"
#include "kernels/prepare.h"
#include "kernels/publish.h"
#include "kernels/sample.h"
#include "kernels/upload.h"

namespace foretoken {

ModelRunner::ModelRunner(Device& device, Queue& queue, Model& model, const KvCaches& kv_caches,
                         Drafter* drafter, StepMemory& memory, const ModelRunnerConfig& config)
    : queue_(queue),
      model_(model),
      kv_caches_(kv_caches),
      drafter_(drafter),
      memory_(memory),
      config_(config),
      arena_(device, MemoryKind::kDevice) {
  for (int rows = 1;; rows *= 2) {
    buckets_.push_back({std::min(rows, config_.max_rows), nullptr});
    if (rows >= config_.max_rows) break;
  }
}

Status ModelRunner::start() {
  const size_t floats =
      static_cast<size_t>(config_.logits_tile) * static_cast<size_t>(model_.config().vocab_size);
  FT_ASSIGN_OR_RETURN(logits_, arena_.take_array<float>(floats, "logits"));
  if (!config_.graphs) return {};
  for (Bucket& bucket : buckets_) {
    queue_.begin_capture();
    enqueue_step(bucket.max_rows);
    bucket.graph = queue_.end_capture();
    if (bucket.graph == nullptr) {
      return internal_error("cannot capture the graph of " + std::to_string(bucket.max_rows) +
                            " rows; try --enforce-eager");
    }
  }
  return queue_.drain();
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

void ModelRunner::submit(uint64_t step, int num_rows) {
  if (config_.hooks.reuse_ring_entry && step > 0) {
    std::memcpy(entry_bytes(step - 1), entry_bytes(step), memory_.plan_entry_bytes);
  }
  const auto bucket = std::find_if(buckets_.begin(), buckets_.end(),
                                   [&](const Bucket& b) { return b.max_rows >= num_rows; });
  FT_CHECK(bucket != buckets_.end());
  if (bucket->graph != nullptr) {
    queue_.replay(*bucket->graph);
  } else {
    enqueue_step(bucket->max_rows);
  }
}

void ModelRunner::enqueue_step(int max_rows) {
  enqueue_inputs(max_rows);
  model_.forward(queue_, memory_.tensors, memory_.batch, kv_caches_, max_rows);
  enqueue_logits(std::min(max_rows, config_.max_logits_rows));
  enqueue_outputs();
}

void ModelRunner::enqueue_inputs(int max_rows) {
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
                   .max_logits_rows = std::min(max_rows, config_.max_logits_rows)});
}

void ModelRunner::enqueue_logits(int max_logits_rows) {
  for (int offset = 0; offset < max_logits_rows; offset += config_.logits_tile) {
    const int rows = std::min(config_.logits_tile, max_logits_rows - offset);
    model_.logits(queue_, memory_.tensors, offset, rows, logits_);
    sample(queue_, {.logits = logits_,
                    .tensors = memory_.tensors,
                    .batch = memory_.batch,
                    .row_offset = offset,
                    .max_rows = rows,
                    .vocab = model_.config().vocab_size});
  }
}

void ModelRunner::enqueue_outputs() {
  commit(queue_, {.plan = memory_.plan,
                  .limits = memory_.limits(),
                  .batch = memory_.batch,
                  .tensors = memory_.tensors,
                  .result = memory_.result,
                  .result_limits = memory_.result_limits()});
  publish(queue_, {.step = memory_.step_counter,
                   .result = memory_.result,
                   .limits = memory_.result_limits(),
                   .with_logprobs = 0,
                   .with_pooled = 0,
                   .ring = memory_.result_ring,
                   .entry_bytes = memory_.result_entry_bytes,
                   .word = memory_.published.word});
  if (drafter_ != nullptr) {
    drafter_->propose(queue_, {memory_.plan, memory_.limits(), memory_.batch, memory_.tensors});
  }
}

}  // namespace foretoken
