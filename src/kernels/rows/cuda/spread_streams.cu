#include "kernels/rows/spread_streams.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kSpreadThreads = 256;

// A thread moves one column of all streams of one row.
__global__ void __launch_bounds__(kSpreadThreads) spread_streams_kernel(SpreadStreamsArgs args) {
  wait_for_previous();
  const int row = blockIdx.y;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  const int column = blockIdx.x * kSpreadThreads + threadIdx.x;
  if (column >= args.size) return;
  const int count = args.num_streams;
  const float made = args.made[int64_t{row} * args.size + column];
  float* streams = args.streams + int64_t{row} * count * args.size + column;
  if (args.weights == nullptr) {
    for (int s = 0; s < count; ++s) streams[int64_t{s} * args.size] = made;
    return;
  }
  const float* weights = args.weights + int64_t{row} * count * (1 + count);
  float entered[kMaxHyperStreams];
#pragma unroll
  for (int j = 0; j < kMaxHyperStreams; ++j) {
    if (j < count) entered[j] = streams[int64_t{j} * args.size];
  }
  for (int s = 0; s < count; ++s) {
    float x = __fmul_rn(weights[s], made);
#pragma unroll
    for (int j = 0; j < kMaxHyperStreams; ++j) {
      if (j < count) x = __fadd_rn(x, __fmul_rn(weights[count + j * count + s], entered[j]));
    }
    streams[int64_t{s} * args.size] = x;
  }
}

}  // namespace

void launch_spread_streams(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<SpreadStreamsArgs>(packed);
  const dim3 grid(ceil_div(args.size, kSpreadThreads), args.max_rows);
  launch_kernel(spread_streams_kernel, grid, kSpreadThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
