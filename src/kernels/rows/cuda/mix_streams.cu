#include "kernels/rows/mix_streams.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/rows/stream_math.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;

// A thread moves one column of all streams of one row.
__global__ void __launch_bounds__(kThreads) mix_streams_kernel(MixStreamsArgs args) {
  __shared__ float factors[kMaxStreams * kMaxStreams];
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.y;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  const int count = args.num_streams;
  const float* routed = args.routed + int64_t{row} * count;
  for (int i = threadIdx.x; i < num_stream_factors(args); i += kThreads) {
    factors[i] = stream_factor(args, routed, i);
  }
  __syncthreads();
  const int column = blockIdx.x * kThreads + threadIdx.x;
  if (column >= args.size) return;
  const int64_t at = int64_t{row} * args.size + column;
  const int64_t stride = int64_t{args.stream_rows} * args.size;
  float entered[kMaxStreams];
#pragma unroll
  for (int i = 0; i < kMaxStreams; ++i) {
    if (i < count) entered[i] = args.streams[i * stride + at];
  }
  float innovation = 0;
  if (args.activated != nullptr) {
    innovation = __fsub_rn(args.activated[at], args.streams[args.active * stride + at]);
  }
  float active = 0;
#pragma unroll
  for (int i = 0; i < kMaxStreams; ++i) {
    if (i >= count) break;
    float x = entered[i];
    if (args.activated != nullptr) {
      x = __fadd_rn(x, __fmul_rn(factors[i], innovation));
    } else {
#pragma unroll
      for (int j = 0; j < kMaxStreams; ++j) {
        if (j < count) x = __fadd_rn(x, __fmul_rn(factors[i * count + j], entered[j]));
      }
    }
    args.streams[i * stride + at] = x;
    if (i == args.active) active = x;
  }
  args.out[at] = args.out_scale != nullptr ? __fmul_rn(active, args.out_scale[column]) : active;
}

}  // namespace

void launch_mix_streams(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<MixStreamsArgs>(packed);
  const dim3 grid(ceil_div(args.size, kThreads), args.max_rows);
  launch_kernel(mix_streams_kernel, grid, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
