#include "kernels/embed.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void embed_kernel(EmbedArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= args.counts->num_rows) return;
  const int32_t id = args.token_ids[row];
  const bool valid = id >= 0 && id < args.vocab;
  const T* from = static_cast<const T*>(args.table) + int64_t{valid ? id : 0} * args.hidden;
  float* to = args.out + int64_t{row} * args.hidden;
  for (int i = threadIdx.x; i < args.hidden; i += kThreads) {
    to[i] = to_float(from[i]) * args.scale;
  }
}

}  // namespace

void launch_embed(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<EmbedArgs>(packed);
  const auto kernel =
      args.dtype == DType::kBF16 ? embed_kernel<__nv_bfloat16> : embed_kernel<float>;
  launch_kernel(kernel, args.max_rows, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
