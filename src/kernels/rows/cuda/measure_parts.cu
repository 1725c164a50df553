#include "kernels/rows/measure_parts.h"

#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;

// Each group in turn, by all threads of the block.
__device__ void measure_squares(const float* x, const RowPart& part, float* entries) {
  for (int g = part.first_group(); g <= part.last_group(); ++g) {
    float squares = 0;
    for (int i = part.begin_of(g) + threadIdx.x; i < part.end_of(g); i += kThreads) {
      squares = fmaf(x[i], x[i], squares);
    }
    const float sum = block_sum<kThreads>(squares);
    if (threadIdx.x == 0) entries[part.entry + g] = sum;
    __syncthreads();  // block_sum has one buffer
  }
}

__device__ void measure_moments(const float* x, const RowPart& part, float* entries) {
  float total = 0;
  for (int i = threadIdx.x; i < part.count; i += kThreads) total = __fadd_rn(total, x[i]);
  const float mean = block_sum<kThreads>(total) / static_cast<float>(part.count);
  __syncthreads();  // block_sum has one buffer
  float squares = 0;
  for (int i = threadIdx.x; i < part.count; i += kThreads) {
    const float apart = __fsub_rn(x[i], mean);
    squares = fmaf(apart, apart, squares);
  }
  const float sum = block_sum<kThreads>(squares);
  __syncthreads();
  if (threadIdx.x != 0) return;
  entries[part.entry] = mean;
  entries[part.entry + 1] = sum;
}

template <class T>
__device__ void measure_highest(const T* x, const RowPart& part, float* entries) {
  __shared__ uint32_t of_warps[kThreads / 32];
  uint32_t bits = 0;  // as integers, so that no NaN is passed over
  for (int i = threadIdx.x; i < part.count; i += kThreads) {
    bits = max(bits, __float_as_uint(to_float(x[i])) & 0x7fffffffu);
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    bits = max(bits, __shfl_xor_sync(0xffffffffu, bits, offset));
  }
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = bits;
  __syncthreads();
  for (const uint32_t other : of_warps) bits = max(bits, other);
  __syncthreads();
  if (threadIdx.x == 0) entries[part.entry] = __uint_as_float(bits);
}

// One block: one row.
__global__ void __launch_bounds__(kThreads) measure_parts_kernel(MeasurePartsArgs args) {
  wait_for_previous();
  let_next_start();
  const int64_t row = blockIdx.x;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  float* entries = args.entries + row * args.num_entries;
  for (int i = threadIdx.x; i < args.num_entries; i += kThreads) entries[i] = 0;
  __syncthreads();
  for (int i = 0; i < args.num_parts; ++i) {
    const RowPart& part = args.parts[i];
    const int64_t at = row * args.stride + part.column;
    const float* x = static_cast<const float*>(args.x) + at;
    if (args.measure == PartMeasure::kSquares) {
      measure_squares(x, part, entries);
    } else if (args.measure == PartMeasure::kMoments) {
      measure_moments(x, part, entries);
    } else if (args.dtype == DType::kF32) {
      measure_highest(x, part, entries);
    } else {
      measure_highest(static_cast<const __nv_bfloat16*>(args.x) + at, part, entries);
    }
  }
}

}  // namespace

void launch_measure_parts(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<MeasurePartsArgs>(packed);
  launch_kernel(measure_parts_kernel, args.max_rows, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
