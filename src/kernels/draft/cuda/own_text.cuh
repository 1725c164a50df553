#pragma once
#include "kernels/cuda/common.cuh"
#include "kernels/draft/prediction_match.h"

// Where a sequence's own text, or the prediction of its output, goes on as its end does: what the
// kernels that look texts up share. One block of kOwnThreads threads is at one slot.
namespace foretoken::cuda {

inline constexpr int kOwnThreads = 512;
inline constexpr int kMaxTail = 64;  // tokens of the suffix kept in shared memory

// tail[i] = t[len - 1 - i] for the last `count` tokens, at most kMaxTail. Threads see it behind the
// next __syncthreads.
__device__ inline void load_tail(const BatchState& batch, int slot, int len, int count,
                                 int32_t* tail) {
  if (threadIdx.x < min(min(count, kMaxTail), len)) {
    tail[threadIdx.x] = *token_at(batch, slot, len - 1 - threadIdx.x);
  }
}

// Common suffix of t[..j] and the history, up to max_n tokens.
__device__ inline int suffix_match(const BatchState& batch, int slot, int j, const int32_t* tail,
                                   int len, int max_n) {
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
__device__ inline uint64_t block_max(uint64_t key) {
  __shared__ uint64_t warp_keys[kOwnThreads / 32];
  __syncthreads();
  for (int offset = 16; offset > 0; offset /= 2) {
    const uint64_t other = __shfl_xor_sync(0xffffffffu, key, offset);
    key = other > key ? other : key;
  }
  if (threadIdx.x % 32 == 0) warp_keys[threadIdx.x / 32] = key;
  __syncthreads();
  for (int i = 0; i < kOwnThreads / 32; ++i) key = warp_keys[i] > key ? warp_keys[i] : key;
  return key;
}

// The key of the best place in the slot's prediction whose common suffix has at least `least`
// tokens, or 0; in every thread.
__device__ inline uint64_t find_predicted(const BatchState& batch, int slot,
                                          const prediction_match::Predicted& p, int least) {
  const auto token = [&](int32_t i) { return *token_at(batch, slot, i); };
  uint64_t best = 0;
  for (int next = threadIdx.x; next < p.num_ids; next += kOwnThreads) {
    const int length = prediction_match::common_suffix(p, next, token);
    const uint64_t key = prediction_match::key_of(p, next, length, least);
    best = key > best ? key : best;
  }
  return block_max(best);
}

// The longest match of at least `least` tokens before the last token, counted up to max_n and the
// latest among equals: its length in the upper half, its position in the lower one, or 0; in every
// thread. With `least` above max_n nothing is looked at.
__device__ inline uint64_t find_own(const BatchState& batch, int slot, const int32_t* tail, int len,
                                    int least, int max_n) {
  uint64_t best = 0;
  for (int j = threadIdx.x; least <= max_n && j < len - 1; j += kOwnThreads) {
    const int match = suffix_match(batch, slot, j, tail, len, max_n);
    const uint64_t place =
        static_cast<uint64_t>(static_cast<uint32_t>(match)) << 32 | static_cast<uint32_t>(j);
    if (match >= least && place > best) best = place;
  }
  return block_max(best);
}

// Drafts of one thread: what follows in the prediction, as far as it goes, or in the text, and
// where that passes the end, the draft already made at that place.
__device__ inline void draft_predicted(SlotState& state, const prediction_match::Predicted& p,
                                       uint64_t key, int count) {
  const int next = prediction_match::next_of(p, key);
  state.num_draft_tokens = min(count, p.num_ids - next);
  for (int i = 0; i < state.num_draft_tokens; ++i) state.drafts[i] = p.ids[next + i];
  state.from_prediction = 1;
}
__device__ inline void draft_own(const BatchState& batch, int slot, uint64_t match, int count) {
  SlotState& state = batch.slots[slot];
  const int next = static_cast<int>(match & 0xffffffffu) + 1;
  for (int i = 0; i < count; ++i) {
    state.drafts[i] = next + i < state.len ? *token_at(batch, slot, next + i)
                                           : state.drafts[next + i - state.len];
  }
  state.num_draft_tokens = count;
}

}  // namespace foretoken::cuda
