#include "kernels/upload.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/plan_layout.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 1024;

// Of the newest queue. A failed queue stays failed: its later plans are refused as well.
__device__ PlanFailure* plan_failure;
__device__ bool has_failed;

// The entry may be overwritten by the host as soon as the step is published, and a copy of an older
// step must never be used: no cached loads.
template <class T>
__device__ void copy_words(T* to, const T* from, int count) {
  static_assert(sizeof(T) % 4 == 0);
  const auto* source = reinterpret_cast<const volatile int32_t*>(from);
  auto* target = reinterpret_cast<int32_t*>(to);
  const int64_t words = int64_t{count} * int64_t(sizeof(T) / 4);
  for (int64_t i = threadIdx.x; i < words; i += kThreads) target[i] = source[i];
}

__device__ void apply_inits(const BatchState& batch, const SlotInit* inits, int count) {
  constexpr int kWords = sizeof(SlotParams) / 4;
  for (int i = threadIdx.x; i < count * kWords; i += kThreads) {
    const SlotInit& init = inits[i / kWords];
    const auto* source = reinterpret_cast<const volatile int32_t*>(&init.params);
    reinterpret_cast<int32_t*>(&batch.params[init.slot])[i % kWords] = source[i % kWords];
    if (i % kWords == 0) {
      SlotState& slot = batch.slots[init.slot];
      slot.len = init.len;
      slot.computed = init.computed;
      slot.finished = static_cast<int32_t>(DeviceFinish::kNone);
      slot.num_drafts = 0;
    }
  }
}

// Tables first, then the fresh headers, then their parents, whose epochs may be fresh as well.
__device__ void apply_block_updates(const BatchState& batch, const BlockUpdate* updates,
                                    int count) {
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const BlockUpdate update = updates[i];
    batch.block_tables[int64_t{update.slot} * batch.max_blocks + update.index] = update.block;
    if (update.epoch > 0) {
      batch.page_headers[update.block].epoch = update.epoch;
      batch.page_headers[update.block].count = 0;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const BlockUpdate update = updates[i];
    if (update.epoch == 0) continue;
    PageHeader& header = batch.page_headers[update.block];
    const int64_t at = int64_t{update.slot} * batch.max_blocks + update.index;
    header.parent = update.index > 0 ? batch.block_tables[at - 1] : -1;
    header.parent_epoch = header.parent >= 0 ? batch.page_headers[header.parent].epoch : 0;
  }
}

__device__ bool is_valid(const PlanHeader& header, const PlanLimits& limits, uint64_t step) {
  const auto within = [](int32_t count, int32_t limit) { return count >= 0 && count <= limit; };
  return header.step == step && within(header.num_spans, limits.max_spans) &&
         within(header.num_inits, limits.max_spans) &&
         within(header.num_block_updates, limits.max_block_updates) &&
         within(header.num_tokens, limits.max_tokens);
}

// Tells the host and leaves a plan without spans, so that the rest of the step does nothing.
__device__ void refuse_plan(const PlanView& plan, uint64_t plan_step, uint64_t step) {
  *plan.header = PlanHeader{step, 0, 0, 0, 0};
  if (has_failed) return;
  has_failed = true;
  plan_failure->plan_step = plan_step;
  plan_failure->step = step;
  __threadfence_system();
  *const_cast<volatile uint64_t*>(&plan_failure->failed) = 1;
}

// One block: the parts depend on each other and are small.
__global__ void __launch_bounds__(kThreads) upload_kernel(UploadArgs args) {
  wait_for_previous();
  let_next_start();
  const uint64_t step = *args.step;
  char* entry = const_cast<char*>(args.ring) + (step % kStepRingSize) * args.entry_bytes;
  const PlanView from = plan_view(entry, args.limits);
  const PlanView to = plan_view(args.plan, args.limits);
  __shared__ PlanHeader header;
  copy_words(&header, from.header, 1);
  __syncthreads();
  // Host and device disagree about the step: nothing after it can be right.
  if (has_failed || !is_valid(header, args.limits, step)) {
    if (threadIdx.x == 0) refuse_plan(to, header.step, step);
    return;
  }
  copy_words(to.header, from.header, 1);
  copy_words(to.spans, from.spans, header.num_spans);
  apply_inits(args.batch, from.inits, header.num_inits);
  apply_block_updates(args.batch, from.block_updates, header.num_block_updates);
  __syncthreads();
  for (int s = 0; s < header.num_spans; ++s) {
    const SpanPlan span = to.spans[s];
    for (int j = threadIdx.x; j < span.num_new_ids; j += kThreads) {
      append_token(args.batch, span.slot, span.write_position + j,
                   from.tokens[span.token_offset + j]);
    }
  }
}

}  // namespace

void report_failures_to(PlanFailure* failure) {
  const bool none = false;
  cudaMemcpyToSymbol(plan_failure, &failure, sizeof failure);
  cudaMemcpyToSymbol(has_failed, &none, sizeof none);
}

void launch_upload(const void* args, cudaStream_t stream) {
  launch_kernel(upload_kernel, 1, kThreads, 0, stream, op_args<UploadArgs>(args));
}

}  // namespace foretoken::cuda
