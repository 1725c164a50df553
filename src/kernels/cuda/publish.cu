#include "kernels/publish.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/plan_layout.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) publish_kernel(PublishArgs args) {
  wait_for_previous();
  let_next_start();
  const uint64_t step = *args.step;
  const auto* header = static_cast<const ResultHeader*>(args.result);
  const int64_t bytes =
      align16(sizeof(ResultHeader)) + int64_t{header->num_spans} * int64_t{sizeof(SpanResult)};
  const auto* from = static_cast<const int32_t*>(args.result);
  auto* to = reinterpret_cast<int32_t*>(args.ring + (step % kStepRingSize) * args.entry_bytes);
  for (int64_t i = threadIdx.x; i < bytes / 4; i += kThreads) to[i] = from[i];
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) {
    *args.step = step + 1;
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(args.word), "l"(step + 1) : "memory");
  }
}

}  // namespace

void launch_publish(const void* args, cudaStream_t stream) {
  launch_kernel(publish_kernel, 1, kThreads, 0, stream, op_args<PublishArgs>(args));
}

}  // namespace foretoken::cuda
