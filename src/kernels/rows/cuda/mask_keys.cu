#include "kernels/rows/mask_keys.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kMaskThreads = 64;

// A block has a row, a thread some of its heads.
__global__ void __launch_bounds__(kMaskThreads) mask_keys_kernel(MaskKeysArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= args.counts->num_rows) return;
  const int heads = args.num_heads + args.num_kv_heads;
  float* qkv = args.qkv + int64_t{row} * (heads + args.num_kv_heads) * args.head_dim;
  for (int head = threadIdx.x; head < heads; head += kMaskThreads) {
    float* at = qkv + int64_t{head} * args.head_dim + args.element;
    if (head < args.num_heads) {
      at[0] = at[1] = 1;
      continue;
    }
    const int key = head - args.num_heads;
    const float step = args.steps[int64_t{row} * args.step_stride + key];
    const float term = mask_term(step, args.rates[key], args.scale);
    const float rounded = __bfloat162float(__float2bfloat16_rn(term));
    at[0] = rounded;
    at[1] = term - rounded;
  }
}

}  // namespace

void launch_mask_keys(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<MaskKeysArgs>(packed);
  launch_kernel(mask_keys_kernel, args.max_rows, kMaskThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
