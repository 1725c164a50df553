#include "kernels/step/upload.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/draft_lists.h"
#include "kernels/plan_layout.h"
#include "kernels/step/plan_check.h"

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
    const auto* source = reinterpret_cast<const int32_t*>(&init.params);
    reinterpret_cast<int32_t*>(&batch.params[init.slot])[i % kWords] = source[i % kWords];
    if (i % kWords == 0) {
      SlotState& slot = batch.slots[init.slot];
      slot.len = init.len;
      slot.computed = init.computed;
      slot.finished = static_cast<int32_t>(DeviceFinish::kNone);
      slot.num_draft_tokens = 0;
      slot.from_prediction = 0;
      slot.drafted_by = init.params.drafter;
      slot.found_by = 0;
      slot.learnt = learnt_before(init);
      slot.draft = DraftState{};
      slot.draft.computed = init.draft_computed;
      for (DraftRates& rates : slot.lookup_rates) rates = DraftRates{};
      slot.branch = BranchState{};
    }
  }
}

// The lists of each init, one after the other: few slots have any.
__device__ void copy_lists(const SlotLists& lists, const SlotInit* inits, int count,
                           const uint32_t* all_words) {
  for (int i = 0; i < count; ++i) {
    const SlotInit& init = inits[i];
    const SlotParams& params = init.params;
    // Of the slot's last request, whose expressions are not this one's.
    if (lists.flex != nullptr && params.num_flex_words == 0 && threadIdx.x < 2) {
      lists.flex[int64_t{init.slot} * lists.max_flex_words + threadIdx.x] = 0;
    }
    if (list_words(params, lists) == 0) continue;
    const uint32_t* words = all_words + init.word_offset;
    copy_words(reinterpret_cast<uint32_t*>(lists.logit_bias + int64_t{init.slot} * kMaxLogitBias),
               words, 2 * params.num_logit_bias);
    words += 2 * params.num_logit_bias;
    copy_words(reinterpret_cast<uint32_t*>(lists.bad_words + int64_t{init.slot} * kMaxBadWordInts),
               words, params.num_bad_word_ints);
    words += params.num_bad_word_ints;
    if (params.has_allowed_ids != 0) {
      copy_words(lists.allowed_ids + int64_t{init.slot} * lists.mask_words, words,
                 lists.mask_words);
      words += lists.mask_words;
    }
    if (params.num_prediction > 0) {
      copy_words(
          reinterpret_cast<uint32_t*>(lists.prediction + int64_t{init.slot} * lists.max_prediction),
          words, params.num_prediction);
      words += params.num_prediction;
    }
    if (params.num_flex_words == 0) continue;
    copy_words(lists.flex + int64_t{init.slot} * lists.max_flex_words, words,
               params.num_flex_words);
  }
}

// Tables first, then the fresh headers, then their parents, whose epochs may be fresh as well.
__device__ void apply_block_updates(const BatchState& batch, const BlockUpdate* updates,
                                    int count) {
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const BlockUpdate update = updates[i];
    int32_t* table = update.windowed != 0 ? batch.window_tables : batch.block_tables;
    table[int64_t{update.slot} * batch.max_blocks + update.index] = update.block;
    if (update.epoch > 0 && update.windowed == 0) {
      PageHeader& header = batch.page_headers[update.block];
      header.epoch = update.epoch;
      header.count = 0;
      for (int16_t& count : header.draft_counts) count = 0;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const BlockUpdate update = updates[i];
    if (update.epoch == 0 || update.windowed != 0) continue;
    PageHeader& header = batch.page_headers[update.block];
    const int64_t at = int64_t{update.slot} * batch.max_blocks + update.index;
    header.parent = update.index > 0 ? batch.block_tables[at - 1] : -1;
    header.parent_epoch = header.parent >= 0 ? batch.page_headers[header.parent].epoch : 0;
  }
}

// Whether every part of the plan stays inside; the same answer for every thread.
__device__ bool has_valid_parts(const PlanView& plan, const PlanHeader& header,
                                const BatchState& batch) {
  bool valid = true;
  for (int i = threadIdx.x; i < header.num_inits; i += kThreads) {
    valid &= is_valid_init(plan.inits[i], header, batch);
  }
  for (int i = threadIdx.x; i < header.num_block_updates; i += kThreads) {
    valid &= is_valid_block_update(plan.block_updates[i], batch);
  }
  for (int i = threadIdx.x; i < header.num_spans; i += kThreads) {
    valid &= is_valid_span(plan.spans[i], header, batch);
  }
  return __syncthreads_and(valid) != 0;
}

// Tells the host and leaves a plan without spans, so that the rest of the step does nothing.
__device__ void refuse_plan(const PlanView& plan, uint64_t plan_step, uint64_t step) {
  *plan.header = PlanHeader{step, 0, 0, 0, 0, 0};
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
  if (args.stamps != nullptr && threadIdx.x == 0) {
    args.stamps[step % kStepRingSize].begin_ns = global_nanoseconds();
  }
  char* entry = const_cast<char*>(args.ring) + (step % kStepRingSize) * args.entry_bytes;
  const PlanView from = plan_view(entry, args.limits);
  const PlanView to = plan_view(args.plan, args.limits);
  __shared__ PlanHeader header;
  copy_words(&header, from.header, 1);
  __syncthreads();
  // Host and device disagree about the step: nothing after it can be right.
  if (has_failed || header.step != step || !is_valid_header(header, args.limits)) {
    if (threadIdx.x == 0) refuse_plan(to, header.step, step);
    return;
  }
  copy_words(to.header, from.header, 1);
  copy_words(to.spans, from.spans, header.num_spans);
  copy_words(to.inits, from.inits, header.num_inits);
  copy_words(to.block_updates, from.block_updates, header.num_block_updates);
  __syncthreads();
  if (!has_valid_parts(to, header, args.batch)) {
    if (threadIdx.x == 0) refuse_plan(to, header.step, step);
    return;
  }
  if (args.only_spans != 0) return;
  apply_inits(args.batch, to.inits, header.num_inits);
  copy_lists(args.batch.lists, to.inits, header.num_inits, from.words);
  apply_block_updates(args.batch, to.block_updates, header.num_block_updates);
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
