#include "kernels/rows/rms_norm.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/rows/cuda/norm_row.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 512;  // of rows that NormRow does not take
constexpr int kCached = 8;

__device__ RowKind row_kind(const RmsNormArgs& args) {
  return args.row_index == nullptr ? RowKind::kToken : RowKind::kLogits;
}

// With a scale of 1, the most frequent one, these are sums.
__device__ float scaled_sum(float value, float delta, float scale) {
  return fmaf(delta, scale, value);
}
__device__ float4 scaled_sum(float4 a, float4 b, float scale) {
  return {fmaf(b.x, scale, a.x), fmaf(b.y, scale, a.y), fmaf(b.z, scale, a.z),
          fmaf(b.w, scale, a.w)};
}

// One block: one row. Rows up to max_rows are readable, so that the loads need not wait for the
// live count.
template <class T, int Threads, int Vectors>
__global__ void __launch_bounds__(Threads) rms_norm_kernel(RmsNormArgs args) {
  auto weight = load_norm_weight<Threads, Vectors>(args.weight, args.hidden);
  wait_for_previous();
  let_next_start();
  const int i = blockIdx.x;
  const int live = live_rows(args.counts, row_kind(args), args.row_offset, args.max_rows);
  if (args.row_index != nullptr && i >= live) return;
  const int64_t row = args.row_index == nullptr ? i : args.row_index[args.row_offset + i];
  float* residual = args.residual + row * args.hidden;
  NormRow<Threads, Vectors> values{args.hidden, {}};
  values.for_each([&](int at, float4& v) { v = *reinterpret_cast<const float4*>(residual + at); });
  if (args.delta != nullptr) {
    const float* delta = args.delta + row * args.hidden;
    values.for_each([&](int at, float4& v) {
      v = scaled_sum(v, *reinterpret_cast<const float4*>(delta + at), args.delta_scale);
    });
  }
  if (i >= live) return;
  if (args.delta != nullptr && args.row_index == nullptr) {
    values.for_each([&](int at, float4& v) { *reinterpret_cast<float4*>(residual + at) = v; });
  }
  T* out = static_cast<T*>(args.out) + int64_t{i} * args.hidden;
  if (args.weight == nullptr) {
    values.for_each([&](int at, float4& v) { store4(out + at, v); });
  } else {
    store_normed(values, weight, values.scale(args.eps), out);
  }
}

__device__ float normed(const RmsNormArgs& args, float value, float scale, int c) {
  return args.weight == nullptr ? value : value * scale * args.weight[c];
}

// The same for rows of any length. Values wait in registers for the sum, kCached of them in each
// thread; a longer row is read again.
template <class T>
__global__ void __launch_bounds__(kThreads) rms_norm_any_kernel(RmsNormArgs args) {
  wait_for_previous();
  let_next_start();
  const int i = blockIdx.x;
  if (i >= live_rows(args.counts, row_kind(args), args.row_offset, args.max_rows)) return;
  const int64_t row = args.row_index == nullptr ? i : args.row_index[args.row_offset + i];
  float* residual = args.residual + row * args.hidden;
  const float* delta = args.delta == nullptr ? nullptr : args.delta + row * args.hidden;
  const bool writes = delta != nullptr && args.row_index == nullptr;
  const auto value_at = [&](int c) {
    return delta == nullptr ? residual[c] : scaled_sum(residual[c], delta[c], args.delta_scale);
  };
  float cached[kCached];
#pragma unroll
  for (int j = 0; j < kCached; ++j) {
    const int c = threadIdx.x + j * kThreads;
    cached[j] = c < args.hidden ? value_at(c) : 0.0f;
  }
  float squares = 0;
#pragma unroll
  for (int j = 0; j < kCached; ++j) {
    const int c = threadIdx.x + j * kThreads;
    squares = fmaf(cached[j], cached[j], squares);
    if (writes && c < args.hidden) residual[c] = cached[j];
  }
  for (int c = threadIdx.x + kCached * kThreads; c < args.hidden; c += kThreads) {
    const float value = value_at(c);
    squares = fmaf(value, value, squares);
  }
  const float mean = block_sum<kThreads>(squares) / static_cast<float>(args.hidden);
  const float scale = 1.0f / sqrtf(mean + args.eps);
  T* out = static_cast<T*>(args.out) + int64_t{i} * args.hidden;
#pragma unroll
  for (int j = 0; j < kCached; ++j) {
    const int c = threadIdx.x + j * kThreads;
    if (c < args.hidden) out[c] = from_float<T>(normed(args, cached[j], scale, c));
  }
  for (int c = threadIdx.x + kCached * kThreads; c < args.hidden; c += kThreads) {
    const float value = value_at(c);
    if (writes) residual[c] = value;
    out[c] = from_float<T>(normed(args, value, scale, c));
  }
}

// The layer norm of rows of any length. Each thread reads what it alone writes.
template <class T>
__global__ void __launch_bounds__(kThreads) layer_norm_kernel(RmsNormArgs args) {
  wait_for_previous();
  let_next_start();
  const int i = blockIdx.x;
  if (i >= live_rows(args.counts, row_kind(args), args.row_offset, args.max_rows)) return;
  const int64_t row = args.row_index == nullptr ? i : args.row_index[args.row_offset + i];
  float* residual = args.residual + row * args.hidden;
  const float* delta = args.delta == nullptr ? nullptr : args.delta + row * args.hidden;
  const bool writes = delta != nullptr && args.row_index == nullptr;
  const auto value_at = [&](int c) {
    return delta == nullptr ? residual[c] : scaled_sum(residual[c], delta[c], args.delta_scale);
  };
  const float size = static_cast<float>(args.hidden);
  float total = 0;
  for (int c = threadIdx.x; c < args.hidden; c += kThreads) total += value_at(c);
  const float mean = block_sum<kThreads>(total) / size;
  float squares = 0;
  for (int c = threadIdx.x; c < args.hidden; c += kThreads) {
    const float apart = value_at(c) - mean;
    squares = fmaf(apart, apart, squares);
  }
  __syncthreads();  // block_sum has one buffer
  const float scale = 1.0f / sqrtf(block_sum<kThreads>(squares) / size + args.eps);
  T* out = static_cast<T*>(args.out) + int64_t{i} * args.hidden;
  for (int c = threadIdx.x; c < args.hidden; c += kThreads) {
    const float value = value_at(c);
    if (writes) residual[c] = value;
    const float bias = args.bias == nullptr ? 0.0f : args.bias[c];
    out[c] = from_float<T>(
        args.weight == nullptr ? value : fmaf((value - mean) * scale, args.weight[c], bias));
  }
}

template <class T>
void launch(const RmsNormArgs& args, cudaStream_t stream) {
  if (args.centred != 0) {
    launch_kernel(layer_norm_kernel<T>, args.max_rows, kThreads, 0, stream, args);
    return;
  }
  const bool taken = with_norm_shape(args.hidden, [&](auto threads, auto vectors) {
    launch_kernel(rms_norm_kernel<T, threads(), vectors()>, args.max_rows, threads(), 0, stream,
                  args);
  });
  if (!taken) {
    launch_kernel(rms_norm_any_kernel<T>, args.max_rows, kThreads, 0, stream, args);
  }
}

}  // namespace

void launch_rms_norm(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<RmsNormArgs>(packed);
  args.out_dtype == DType::kBF16 ? launch<__nv_bfloat16>(args, stream)
                                 : launch<float>(args, stream);
}

}  // namespace foretoken::cuda
