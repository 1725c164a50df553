#include "kernels/step/verify_and_commit.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/plan_layout.h"
#include "kernels/step/commit_span.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 64;

// One thread: one span.
__global__ void __launch_bounds__(kThreads) verify_and_commit_kernel(VerifyAndCommitArgs args) {
  wait_for_previous();
  let_next_start();
  const StepCounts counts = *args.tensors.counts;
  const ResultView out = result_view(args.result, args.result_limits);
  const int index = blockIdx.x * kThreads + threadIdx.x;
  if (index == 0) {
    const PlanView plan = plan_view(const_cast<void*>(args.plan), args.limits);
    *out.header =
        ResultHeader{plan.header->step, counts.num_spans, counts.num_rows, counts.num_logits_rows};
  }
  if (index >= counts.num_spans) return;
  const SpanState span = args.tensors.spans[index];
  SpanResult& result = out.spans[index];
  clear_counts(result);
  commit_span(args, span, result);
  const int begin = args.batch.slots[span.slot].len - result.num_committed;
  for (int i = 0; i < result.num_committed; ++i) {
    append_token(args.batch, span.slot, begin + i, result.ids[i]);
  }
}

}  // namespace

void launch_verify_and_commit(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<VerifyAndCommitArgs>(packed);
  launch_kernel(verify_and_commit_kernel, ceil_div(args.limits.max_spans, kThreads), kThreads, 0,
                stream, args);
}

}  // namespace foretoken::cuda
