#include "kernels/latent/turn_tails.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/latent/cuda/coded_entry.cuh"
#include "kernels/latent/cuda/tail_turn.cuh"

namespace foretoken::cuda {
namespace {

// One block: one head of a row.
template <class T>
__global__ void __launch_bounds__(kTailThreads) turn_tails_kernel(TurnTailsArgs args) {
  __shared__ float sums[kTailThreads / 32];
  wait_for_all_before();
  let_next_start();
  const int row = blockIdx.x, head = blockIdx.y;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  if (!keeps_tail(args, row)) return;
  const float* x = args.x + int64_t{row} * args.x_stride + int64_t{head} * args.head_dim;
  float factor = 1.0f;
  if (args.norm_eps > 0) {
    float squares = 0;
    for (int i = threadIdx.x; i < args.head_dim; i += kTailThreads) squares += x[i] * x[i];
    const float mean = sum_of_tail_block(squares, sums) / static_cast<float>(args.head_dim);
    factor = 1.0f / sqrtf(mean + args.norm_eps);
  }
  const auto normed = [&](int i) {
    const float value = args.norm_eps > 0 ? x[i] * factor : x[i];
    return args.norm != nullptr ? value * args.norm[i] : value;
  };
  const int64_t place = args.entry_slot != nullptr
                            ? int64_t{args.entry_slot[row] / args.context_size}
                            : int64_t{row} * args.num_heads + head;
  const TailPlace tail{args.head_dim - args.rope_dim,
                       static_cast<float>(args.positions[row] + args.position_shift),
                       args.back ? -1.0f : 1.0f};
  const auto turned = [&](int i) { return tail.element(i, args.inv_freq, args.scaling, normed); };
  store_turned<T>(entry_form(args), turned, args.out, place);
}

}  // namespace

void launch_turn_tails(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<TurnTailsArgs>(packed);
  const auto kernel =
      args.dtype == DType::kBF16 ? turn_tails_kernel<__nv_bfloat16> : turn_tails_kernel<float>;
  launch_kernel(kernel, dim3(args.max_rows, args.num_heads), kTailThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
