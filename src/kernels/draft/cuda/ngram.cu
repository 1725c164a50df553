#include "kernels/draft/ngram.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/draft/prediction_match.h"
#include "kernels/plan_layout.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kMaxTail = 64;  // tokens of the suffix kept in shared memory

// Common suffix of t[..j] and the history, up to max_n tokens; tail[i] = t[len - 1 - i].
__device__ int suffix_match(const BatchState& batch, int slot, int j, const int32_t* tail, int len,
                            int max_n) {
  const int limit = min(max_n, j + 1);
  int match = 0;
  while (match < limit) {
    const int32_t expected =
        match < kMaxTail ? tail[match] : *token_at(batch, slot, len - 1 - match);
    if (*token_at(batch, slot, j - match) != expected) break;
    ++match;
  }
  return match;
}

// Largest key of the block, in every thread.
__device__ uint64_t block_max(uint64_t key) {
  __shared__ uint64_t warp_keys[kThreads / 32];
  __syncthreads();
  for (int offset = 16; offset > 0; offset /= 2) {
    const uint64_t other = __shfl_xor_sync(0xffffffffu, key, offset);
    key = other > key ? other : key;
  }
  if (threadIdx.x % 32 == 0) warp_keys[threadIdx.x / 32] = key;
  __syncthreads();
  for (int i = 0; i < kThreads / 32; ++i) key = warp_keys[i] > key ? warp_keys[i] : key;
  return key;
}

// The key of the best place in the slot's prediction, or 0; in every thread.
__device__ uint64_t find_predicted(const NgramArgs& args, int slot,
                                   const prediction_match::Predicted& p) {
  const auto token = [&](int32_t i) { return *token_at(args.batch, slot, i); };
  const int least = min(args.min_n, prediction_match::kLeastTokens);
  uint64_t best = 0;
  for (int next = threadIdx.x; next < p.num_ids; next += kThreads) {
    const int length = prediction_match::common_suffix(p, next, token);
    const uint64_t key = prediction_match::key_of(p, next, length, least);
    best = key > best ? key : best;
  }
  return block_max(best);
}

// Of one thread.
__device__ void propose_predicted(SlotState& state, const prediction_match::Predicted& p,
                                  uint64_t key, int wanted) {
  const int next = prediction_match::next_of(p, key);
  state.num_draft_tokens = min(wanted, p.num_ids - next);
  for (int i = 0; i < state.num_draft_tokens; ++i) state.drafts[i] = p.ids[next + i];
  state.from_prediction = 1;
}

// One block: the slot of one span.
__global__ void __launch_bounds__(kThreads) ngram_kernel(NgramArgs args) {
  wait_for_previous();
  let_next_start();
  const PlanView plan = plan_view(const_cast<void*>(args.plan), args.limits);
  if (blockIdx.x >= plan.header->num_spans) return;
  const int slot = plan.spans[blockIdx.x].slot;
  if (args.batch.params[slot].drafter != args.drafter) return;
  SlotState& state = args.batch.slots[slot];
  const int len = state.len;
  const int wanted = min(min(args.num_draft_tokens, kMaxDraftTokens), state.draft.num_draft_tokens);
  const bool ready = state.finished == static_cast<int32_t>(DeviceFinish::kNone) &&
                     state.computed == len - 1 && wanted > 0;
  __shared__ int32_t tail[kMaxTail];
  if (ready && threadIdx.x < min(min(args.max_n, kMaxTail), len)) {
    tail[threadIdx.x] = *token_at(args.batch, slot, len - 1 - threadIdx.x);
  }
  const SlotParams& params = args.batch.params[slot];
  const prediction_match::Predicted predicted{
      args.batch.lists.prediction + int64_t{slot} * args.batch.lists.max_prediction,
      ready ? params.num_prediction : 0, params.prompt_len, len};
  const uint64_t key = find_predicted(args, slot, predicted);
  const int length = prediction_match::length_of(key);
  uint64_t best = 0;
  for (int j = threadIdx.x; ready && length < args.max_n && j < len - 1; j += kThreads) {
    const uint32_t match = suffix_match(args.batch, slot, j, tail, len, args.max_n);
    const uint64_t place = (uint64_t{match} << 32) | static_cast<uint32_t>(j);
    if (match > length && match >= args.min_n && place > best) best = place;
  }
  best = block_max(best);
  if (threadIdx.x != 0) return;
  state.from_prediction = 0;
  if (best == 0 && key != 0) {
    propose_predicted(state, predicted, key, wanted);
    return;
  }
  if (best == 0) {
    state.num_draft_tokens = 0;
    return;
  }
  const int next = static_cast<int>(best & 0xffffffffu) + 1;
  for (int i = 0; i < wanted; ++i) {
    state.drafts[i] =
        next + i < len ? *token_at(args.batch, slot, next + i) : state.drafts[next + i - len];
  }
  state.num_draft_tokens = wanted;
}

}  // namespace

void launch_ngram(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<NgramArgs>(packed);
  launch_kernel(ngram_kernel, args.limits.max_spans, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
