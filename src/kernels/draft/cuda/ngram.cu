#include "kernels/draft/ngram.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/draft/cuda/own_text.cuh"
#include "kernels/draft_lists.h"
#include "kernels/plan_layout.h"

namespace foretoken::cuda {
namespace {

// One block: the slot of one span.
__global__ void __launch_bounds__(kOwnThreads) ngram_kernel(NgramArgs args) {
  wait_for_previous();
  let_next_start();
  const PlanView plan = plan_view(const_cast<void*>(args.plan), args.limits);
  if (blockIdx.x >= plan.header->num_spans) return;
  const int slot = plan.spans[blockIdx.x].slot;
  const SlotParams& params = args.batch.params[slot];
  SlotState& state = args.batch.slots[slot];
  if (!has_turn(state, params, args.drafter)) return;
  const int len = state.len;
  const int wanted = lookup_drafts(state, min(args.num_draft_tokens, kMaxDraftTokens));
  const bool ready = wanted > 0;
  __shared__ int32_t tail[kMaxTail];
  if (ready) load_tail(args.batch, slot, len, args.max_n, tail);
  const prediction_match::Predicted predicted{
      args.batch.lists.prediction + int64_t{slot} * args.batch.lists.max_prediction,
      ready ? params.num_prediction : 0, params.prompt_len, len};
  const uint64_t key =
      find_predicted(args.batch, slot, predicted, min(args.min_n, prediction_match::kLeastTokens));
  const int longer = prediction_match::length_of(key) + 1;
  const uint64_t own =
      find_own(args.batch, slot, tail, ready ? len : 0, max(args.min_n, longer), args.max_n);
  if (threadIdx.x != 0) return;
  state.num_draft_tokens = 0;
  state.from_prediction = 0;
  if (own != 0) {
    draft_own(args.batch, slot, own, wanted);
  } else if (key != 0) {
    draft_predicted(state, predicted, key, wanted);
  }
}

}  // namespace

void launch_ngram(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<NgramArgs>(packed);
  launch_kernel(ngram_kernel, args.limits.max_spans, kOwnThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
