#include "kernels/draft/choose_draft.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/draft/draft_turn.h"
#include "kernels/plan_layout.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 128;

// A thread has a span.
__global__ void __launch_bounds__(kThreads) choose_draft_kernel(ChooseDraftArgs args) {
  wait_for_previous();
  let_next_start();
  const PlanView plan = plan_view(const_cast<void*>(args.plan), args.limits);
  const int num_spans = min(plan.header->num_spans, args.limits.max_spans);
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i < num_spans) choose_draft_of(args, plan.spans[i]);
}

}  // namespace

void launch_choose_draft(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ChooseDraftArgs>(packed);
  launch_kernel(choose_draft_kernel, (args.limits.max_spans + kThreads - 1) / kThreads, kThreads, 0,
                stream, args);
}

}  // namespace foretoken::cuda
