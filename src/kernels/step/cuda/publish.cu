#include "kernels/step/publish.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/plan_layout.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kManyThreads = 1024;  // with logprobs or pooled states

// Calls f(i) for the block's share of [0, count).
template <class F>
__device__ void for_share(int64_t count, const F& f) {
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) f(i);
}

__device__ void copy_logprobs(const ResultView& to, const ResultView& from,
                              const ResultLimits& limits) {
  const int rows = min(from.header->num_logits_rows, limits.max_rows);
  for_share(rows, [&](int64_t i) { to.rows[i] = from.rows[i]; });
  for (int row = threadIdx.x / 32; row < rows; row += blockDim.x / 32) {
    const int count = min(from.rows[row].num_top, limits.max_top);
    const int64_t begin = int64_t{row} * limits.max_top;
    for (int i = threadIdx.x % 32; i < count; i += 32) to.top[begin + i] = from.top[begin + i];
  }
}

__device__ void copy_pooled(const ResultView& to, const ResultView& from,
                            const ResultLimits& limits) {
  for (int span = 0; span < from.header->num_spans; ++span) {
    if (!has_pooled(from.spans[span])) continue;
    const int64_t begin = int64_t{span} * limits.hidden;
    for_share(limits.hidden, [&](int64_t i) { to.pooled[begin + i] = from.pooled[begin + i]; });
  }
}

__global__ void __launch_bounds__(kManyThreads) publish_kernel(PublishArgs args) {
  wait_for_previous();
  let_next_start();
  const uint64_t step = *args.step;
  const auto* header = static_cast<const ResultHeader*>(args.result);
  const int64_t bytes =
      align16(sizeof(ResultHeader)) + int64_t{header->num_spans} * int64_t{sizeof(SpanResult)};
  const auto* from = static_cast<const int32_t*>(args.result);
  auto* to = reinterpret_cast<int32_t*>(args.ring + (step % kStepRingSize) * args.entry_bytes);
  for_share(bytes / 4, [&](int64_t i) { to[i] = from[i]; });
  if (args.with_logprobs != 0 || args.with_pooled != 0) {
    const ResultView source = result_view(const_cast<void*>(args.result), args.limits);
    const ResultView target = result_view(to, args.limits);
    if (args.with_logprobs != 0) copy_logprobs(target, source, args.limits);
    if (args.with_pooled != 0) copy_pooled(target, source, args.limits);
  }
  if (args.stamps != nullptr && threadIdx.x == 0) {
    StepStamps& stamps = args.stamps[step % kStepRingSize];
    stamps.published_ns = stamps.end_ns = global_nanoseconds();
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) {
    *args.step = step + 1;
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(args.word), "l"(step + 1) : "memory");
  }
}

}  // namespace

void launch_publish(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<PublishArgs>(packed);
  const int threads = args.with_logprobs != 0 || args.with_pooled != 0 ? kManyThreads : kThreads;
  launch_kernel(publish_kernel, 1, threads, 0, stream, args);
}

}  // namespace foretoken::cuda
