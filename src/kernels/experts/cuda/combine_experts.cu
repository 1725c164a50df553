#include "kernels/experts/combine_experts.h"

#include "kernels/activation_math.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/rows/cuda/norm_row.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kSlotsAtOnce = 8;  // whose products are on their way together

__device__ float shared_scale(const CombineExpertsArgs& args, int row) {
  return args.shared_gate != nullptr ? activation_math::sigmoid(args.shared_gate[row]) : 1.0f;
}

__device__ bool is_own(const CombineExpertsArgs& args, int id) {
  return id >= args.first_expert && id < args.first_expert + args.num_own;
}

// A thread sums one column of one row over the row's choices.
template <class T>
__global__ void __launch_bounds__(kThreads) combine_kernel(CombineExpertsArgs args) {
  wait_for_previous();
  const int row = static_cast<int>(blockIdx.y);
  const int column = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  if (column >= args.hidden) return;
  const int64_t at = int64_t{row} * args.hidden + column;
  float sum = 0;
  if (args.shared != nullptr) {
    sum = __fmul_rn(args.shared[row * shared_stride(args) + column], shared_scale(args, row));
  }
  const auto* y = static_cast<const T*>(args.y) + int64_t{row} * args.top_k * args.hidden + column;
  const int32_t* ids = args.ids + int64_t{row} * args.top_k;
  for (int slot = 0; slot < args.top_k; ++slot) {
    if (!is_own(args, ids[slot])) continue;
    const float weight =
        args.weights != nullptr ? args.weights[int64_t{row} * args.top_k + slot] : 1.0f;
    sum = fmaf(weight, to_float(y[int64_t{slot} * args.hidden]), sum);
  }
  args.out[at] = args.add != 0 ? __fadd_rn(args.out[at], sum) : sum;
}

// Four products as they lie in memory.
template <class T>
struct Four {
  float4 values;
  __device__ void read(const T* from) { values = load4(from); }
  __device__ float4 floats() const { return values; }
};
template <>
struct Four<__nv_bfloat16> {
  uint2 bits;
  __device__ void read(const __nv_bfloat16* from) { bits = *reinterpret_cast<const uint2*>(from); }
  __device__ float4 floats() const {
    return {__uint_as_float(bits.x << 16), __uint_as_float(bits.x & 0xffff0000u),
            __uint_as_float(bits.y << 16), __uint_as_float(bits.y & 0xffff0000u)};
  }
};

// sum = fma(weight, y, sum) over a row's slots, ascending. ids and weights of slots that the row
// does not have are those of its first one, and products of experts of other ranks are read but
// count nothing.
template <class T, class Row>
__device__ void add_slots(const CombineExpertsArgs& args, int row, Row& sums) {
  constexpr int kVectors = sizeof(sums.values) / sizeof(float4);
  const int64_t first = int64_t{row} * args.top_k;
  const T* y = static_cast<const T*>(args.y) + first * args.hidden;
  for (int base = 0; base < args.top_k; base += kSlotsAtOnce) {
    Four<T> products[kSlotsAtOnce][kVectors];
    float weights[kSlotsAtOnce];
    bool counts[kSlotsAtOnce];
#pragma unroll
    for (int i = 0; i < kSlotsAtOnce; ++i) {
      const bool exists = base + i < args.top_k;
      const int slot = exists ? base + i : 0;
      counts[i] = exists && is_own(args, args.ids[first + slot]);
      weights[i] = args.weights != nullptr ? args.weights[first + slot] : 1.0f;
      if (!exists) continue;
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        const int at = (static_cast<int>(threadIdx.x) + j * Row::kThreads) * 4;
        if (at < args.hidden) products[i][j].read(y + int64_t{slot} * args.hidden + at);
      }
    }
#pragma unroll
    for (int i = 0; i < kSlotsAtOnce; ++i) {
      if (!counts[i]) continue;
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        const float4 p = products[i][j].floats();
        float4& v = sums.values[j];
        v = {fmaf(weights[i], p.x, v.x), fmaf(weights[i], p.y, v.y), fmaf(weights[i], p.z, v.z),
             fmaf(weights[i], p.w, v.w)};
      }
    }
  }
}

// One block: one row, and its norm. Rows up to max_rows are readable.
template <class T, int Threads, int Vectors>
__global__ void __launch_bounds__(Threads) combine_and_norm_kernel(CombineExpertsArgs args) {
  auto weight = load_norm_weight<Threads, Vectors>(args.norm, args.hidden);
  wait_for_previous();
  const int row = static_cast<int>(blockIdx.x);
  const int live = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
  float* out = args.out + int64_t{row} * args.hidden;
  NormRow<Threads, Vectors> before{args.hidden, {}};
  if (args.add != 0) before.for_each([&](int at, float4& v) { v = load4(out + at); });
  NormRow<Threads, Vectors> sums{args.hidden, {}};
  if (args.shared != nullptr) {
    const float* shared = args.shared + row * shared_stride(args);
    const float scale = shared_scale(args, row);
    sums.for_each([&](int at, float4& v) {
      v = load4(shared + at);
      v = {__fmul_rn(v.x, scale), __fmul_rn(v.y, scale), __fmul_rn(v.z, scale),
           __fmul_rn(v.w, scale)};
    });
  }
  add_slots<T>(args, row, sums);
  if (row >= live) return;
  if (args.add != 0) {
#pragma unroll
    for (int j = 0; j < Vectors; ++j) {
      float4& v = sums.values[j];
      const float4 b = before.values[j];
      v = {__fadd_rn(b.x, v.x), __fadd_rn(b.y, v.y), __fadd_rn(b.z, v.z), __fadd_rn(b.w, v.w)};
    }
  }
  sums.for_each([&](int at, float4& v) { store4(out + at, v); });
  store_normed(sums, weight, sums.scale(args.norm_eps),
               static_cast<T*>(args.normed) + int64_t{row} * args.hidden);
}

template <class T>
void launch(const CombineExpertsArgs& args, cudaStream_t stream) {
  if (args.norm != nullptr && with_norm_shape(args.hidden, [&](auto threads, auto vectors) {
        launch_kernel(combine_and_norm_kernel<T, threads(), vectors()>, args.max_rows, threads(), 0,
                      stream, args);
      })) {
    return;
  }
  const dim3 grid(ceil_div(args.hidden, kThreads), args.max_rows);
  launch_kernel(combine_kernel<T>, grid, kThreads, 0, stream, args);
  if (args.norm == nullptr) return;
  const RmsNormArgs norm = norm_behind(args);
  launch_rms_norm(&norm, stream);
}

}  // namespace

void launch_combine_experts(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<CombineExpertsArgs>(packed);
  args.dtype == DType::kBF16 ? launch<__nv_bfloat16>(args, stream) : launch<float>(args, stream);
}

}  // namespace foretoken::cuda
