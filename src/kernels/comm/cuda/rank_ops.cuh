#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/comm/collectives.h"
#include "kernels/step_types.h"

// What the ops between ranks have in common, over peer memory and through NCCL.
namespace foretoken::cuda {

__device__ inline float4 sum_of(const float4& a, const float4& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

__device__ inline bool has_masks(const ShareMasksArgs& args, const SpanState& span) {
  return has_sampled(span) && args.params[span.slot].grammar != 0;
}

// How many masks a slot has and how many of its drafts are decided, as one word.
__device__ inline uint64_t mask_counts(const SlotState& state) {
  return uint64_t{static_cast<uint32_t>(state.num_masks)} << 32 |
         static_cast<uint32_t>(state.num_decided);
}
__device__ inline void take_mask_counts(uint64_t word, SlotState& state) {
  state.num_masks = static_cast<int32_t>(word >> 32);
  state.num_decided = static_cast<int32_t>(word & 0xffffffffu);
}

// What a step tells the next stage: the counts, then these lists of its rows.
inline constexpr int kStepLists = 5;
inline constexpr int kStepHeaderInts = sizeof(StepCounts) / sizeof(int32_t);

// Null: the model has no such list.
__device__ inline int32_t* step_list(const StepTensors& tensors, int i) {
  switch (i) {
    case 0:
      return tensors.token_ids;
    case 1:
      return tensors.positions;
    case 2:
      return tensors.row_slot;
    case 3:
      return tensors.kv_slot;
  }
  return tensors.window_slot;
}

}  // namespace foretoken::cuda
