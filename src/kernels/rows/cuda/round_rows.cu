#include "kernels/rows/round_rows.h"

#include "base/float8.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 8;
constexpr int kLanes = kRoundedGroup / kPerThread;  // of a group

// Zeros behind the row's end.
__device__ void load_columns(float (&values)[kPerThread], const __nv_bfloat16* row, int first,
                             int columns) {
  if (columns % kPerThread == 0 && first < columns) {
    const uint4 all = *reinterpret_cast<const uint4*>(row + first);
    const uint32_t words[4] = {all.x, all.y, all.z, all.w};
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      values[i] = __uint_as_float(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000u);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    values[i] = first + i < columns ? to_float(row[first + i]) : 0.0f;
  }
}

// The scale of the group that kLanes lanes have.
__device__ float scale_of(const float (&values)[kPerThread]) {
  uint32_t bits = 0;  // as integers, so that no NaN is passed over
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) bits = max(bits, __float_as_uint(values[i]) & 0x7fffffffu);
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    bits = max(bits, __shfl_xor_sync(0xffffffffu, bits, offset));
  }
  return fp8_group_scale(__uint_as_float(bits));
}

// x / scale, given the nearest float to 1 / scale; NaN where scale is no number.
__device__ float divided(float x, float scale, float inverse) {
  const float quotient = __fmul_rn(x, inverse);
  return fmaf(fmaf(-quotient, scale, x), inverse, quotient);
}

// The codes of both, that of `low` in the lower byte: e4m3_code.
__device__ uint32_t codes_of(float low, float high) {
#if __CUDA_ARCH__ >= 890
  uint16_t codes;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  return codes;
#else
  return e4m3_code(low) | uint32_t{e4m3_code(high)} << 8;
#endif
}

__global__ void round_rows_kernel(RoundRowsArgs args) {
  wait_for_previous();
  const int row = blockIdx.x;
  const int live =
      live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows / args.per_row);
  if (row >= live * args.per_row) return;
  const int thread = blockIdx.y * kThreads + threadIdx.x;
  const int first = thread * kPerThread, group = thread / kLanes;
  const auto stride = static_cast<int>(rounded_columns(args.columns));
  float values[kPerThread] = {};
  if (first < stride) {
    const auto* x = static_cast<const __nv_bfloat16*>(args.x) + int64_t{row} * args.columns;
    load_columns(values, x, first, args.columns);
  }
  const bool is_given = args.scale > 0;
  const float scale = is_given ? args.scale : scale_of(values);
  if (first >= stride) return;
  const float inverse = __frcp_rn(scale);
  // What is given may be so small that quotients are infinite, which `divided` makes NaN.
  const auto quotient = [&](float x) {
    return is_given ? __fdiv_rn(x, scale) : divided(x, scale, inverse);
  };
  uint32_t words[2] = {};
#pragma unroll
  for (int i = 0; i < kPerThread; i += 2) {
    words[i / 4] |= codes_of(quotient(values[i]), quotient(values[i + 1])) << (i % 4 * 8);
  }
  if (first >= args.columns) words[0] = words[1] = 0;  // where the scale is no number, too
  auto* codes = static_cast<uint8_t*>(args.rounded) + int64_t{row} * stride + first;
  *reinterpret_cast<uint2*>(codes) = {words[0], words[1]};
  if (thread % kLanes != 0) return;
  const float* scales = rounded_scales(args.rounded, args.max_rows, args.columns);
  const_cast<float*>(scales)[group * rounded_scale_rows(args.max_rows) + row] = scale;
}

// A block for each row.
template <class T>
__global__ void round_rows_to_int8_kernel(RoundRowsArgs args) {
  wait_for_previous();
  const int row = blockIdx.x;
  const int live =
      live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows / args.per_row);
  if (row >= live * args.per_row) return;
  const T* x = static_cast<const T*>(args.x) + int64_t{row} * args.columns;
  T* to = static_cast<T*>(args.rounded) + int64_t{row} * args.columns;
  uint32_t bits = 0;  // as integers, so that no NaN is passed over
  const bool is_told = args.highest != nullptr;
  const int64_t entries = int64_t{row} * args.num_entries;
  const int count = is_told ? args.num_highest : args.columns;
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const float value = is_told ? args.highest[entries + i] : to_float(x[i]);
    bits = max(bits, __float_as_uint(value) & 0x7fffffffu);
  }
  __shared__ uint32_t of_warps[kThreads / 32];
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    bits = max(bits, __shfl_xor_sync(0xffffffffu, bits, offset));
  }
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = bits;
  __syncthreads();
  for (const uint32_t other : of_warps) bits = max(bits, other);
  const float highest = __uint_as_float(bits);
  const float scale = __fdiv_rn(127.0f, highest < kLeastInt8Row ? kLeastInt8Row : highest);
  for (int i = threadIdx.x; i < args.columns; i += kThreads) {
    const float code = rintf(__fmul_rn(to_float(x[i]), scale));
    to[i] = from_float<T>(__fdiv_rn(code > 127.0f ? 127.0f : code, scale));
  }
}

void launch_rows_to_int8(const RoundRowsArgs& args, cudaStream_t stream) {
  const dim3 grid(args.max_rows);
  if (args.dtype == DType::kF32) {
    launch_kernel(round_rows_to_int8_kernel<float>, grid, kThreads, 0, stream, args);
  } else {
    launch_kernel(round_rows_to_int8_kernel<__nv_bfloat16>, grid, kThreads, 0, stream, args);
  }
}

}  // namespace

void launch_round_rows(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<RoundRowsArgs>(packed);
  if (args.rounding == RowRounding::kInt8) return launch_rows_to_int8(args, stream);
  const auto stride = rounded_columns(args.columns);
  const dim3 grid(args.max_rows, ceil_div(stride, kThreads * kPerThread));
  launch_kernel(round_rows_kernel, grid, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
