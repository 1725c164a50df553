#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/draft/gru_math.h"
#include "kernels/draft/gru_step.h"

namespace foretoken::cuda {
namespace {

constexpr int kGruThreads = 256;

// A block has a row.
__global__ void __launch_bounds__(kGruThreads) gru_step_kernel(GruStepArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  const int64_t gates = int64_t{row} * 3 * args.size;
  const float* x = args.of_input + gates;
  const float* h = args.of_state != nullptr ? args.of_state + gates : nullptr;
  float* state = args.states + int64_t{args.row_slot[row]} * args.size;
  for (int i = threadIdx.x; i < args.size; i += kGruThreads) {
    state[i] = gru_state(x, h, args.size, i, state[i]);
  }
}

}  // namespace

void launch_gru_step(const void* args, cudaStream_t stream) {
  const auto& a = op_args<GruStepArgs>(args);
  launch_kernel(gru_step_kernel, a.max_rows, kGruThreads, 0, stream, a);
}

}  // namespace foretoken::cuda
