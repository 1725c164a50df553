#pragma once
#include "kernels/activation_math.h"
#include "kernels/cuda/mma.cuh"
#include "kernels/experts/cuda/expert_parts.cuh"

namespace foretoken::cuda {

// The transpose of an 8 x 8 matrix of 16-bit elements, of which lane 4 i + j holds 2 j and 2 j + 1
// of row i.
__device__ inline uint32_t transpose_matrix(uint32_t matrix) {
  uint32_t transposed;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(matrix));
  return transposed;
}

// Stores what a warp has of a part: for one pair of its columns c[4 j ..] of the entries 8 j to 8 j
// + 7, as wgmma leaves them with columns as rows.
template <int N, bool Gated>
class ExpertPartStore {
 public:
  // entries: those of the part, in shared memory.
  __device__ ExpertPartStore(const ExpertGemmArgs& args, const ExpertPart& part, const int* entries)
      : args_(args), part_(part), entries_(entries), shared_(part.expert == kSharedExpert) {
    bias_ = shared_ ? args.shared.bias : args.bias;
    n_ = shared_ ? args.shared.n : args.n;
    if (bias_ == nullptr || shared_) return;
    bias_ += int64_t{part.expert} * (Gated ? n_ / 2 : n_);
  }

  // Moves up what it has not stored yet: one short code for all entries.
  __device__ void take(int pair, float (&c)[N / 2]) const {
    constexpr int kAtOnce = N > 32 ? 4 : N / 8;
    const int groups = ceil_div(part_.num_entries, 8);
#pragma unroll 1
    for (int j = 0; j < groups; j += kAtOnce) {
      if constexpr (Gated) {
        store_gated<kAtOnce>(pair, j, c);
      } else if (shared_) {
        store_floats<kAtOnce>(pair, j, c);
      } else {
        store_plain<kAtOnce>(pair, j, c);
      }
      if constexpr (kAtOnce * 8 < N) {
#pragma unroll
        for (int i = kAtOnce * 4; i < N / 2; ++i) c[i - kAtOnce * 4] = c[i];
      }
    }
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }

  template <int Groups>
  __device__ void store_gated(int pair, int first, const float (&c)[N / 2]) const {
    const int64_t size = n_ / 2;
    const int column = pair * 8 + lane() / 4;
    float gate_bias = 0, up_bias = 0;
    if (bias_ != nullptr) {
      gate_bias = bias_[column];
      up_bias = bias_[(shared_ ? 1 : int64_t{args_.lists.count}) * size + column];
    }
    float gates[Groups * 2], ups[Groups * 2];
#pragma unroll
    for (int i = 0; i < Groups * 2; ++i) {
      gates[i] = c[i / 2 * 4 + i % 2];
      ups[i] = c[i / 2 * 4 + i % 2 + 2];
      if (bias_ == nullptr) continue;
      gates[i] = __fadd_rn(gates[i], gate_bias);
      ups[i] = __fadd_rn(ups[i], up_bias);
    }
    activate(gates, ups);
#pragma unroll
    for (int j = 0; j < Groups; ++j) {
      put(size, pair * 8, first + j, pack_bf16(gates[j * 2], gates[j * 2 + 1]));
    }
  }

  // Each gate becomes activation(gate) * up.
  template <int Count>
  __device__ void activate(float (&gates)[Count], const float (&ups)[Count]) const {
    switch (args_.activation) {
      case Activation::kSilu:
        return activation_math::gate_all<Activation::kSilu>(gates, ups);
      case Activation::kGelu:
        return activation_math::gate_all<Activation::kGelu>(gates, ups);
      case Activation::kClampedSilu:
      case Activation::kSitu:
#pragma unroll
        for (int i = 0; i < Count; ++i) {
          gates[i] =
              activation_math::numbered_gated(args_.activation, args_.clamp, gates[i], ups[i]);
        }
        return;
      case Activation::kRelu:
#pragma unroll
        for (int i = 0; i < Count; ++i) {
          gates[i] = activation_math::rectified_gated(gates[i], ups[i]);
        }
        return;
      case Activation::kGeluShare:
#pragma unroll
        for (int i = 0; i < Count; ++i) gates[i] = activation_math::share_gated(gates[i], ups[i]);
        return;
      default:
        return activation_math::gate_all<Activation::kGeluTanh>(gates, ups);
    }
  }

  template <int Groups>
  __device__ void store_plain(int pair, int first, const float (&c)[N / 2]) const {
    const int column = pair * kPairRows + lane() / 4;
    const float low = bias_ != nullptr ? bias_[column] : 0.0f;
    const float high = bias_ != nullptr ? bias_[column + 8] : 0.0f;
#pragma unroll
    for (int j = 0; j < Groups; ++j) {
      float sums[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sums[i] = c[j * 4 + i];
        if (bias_ != nullptr) sums[i] = __fadd_rn(sums[i], i < 2 ? low : high);
      }
      put(n_, pair * kPairRows, first + j, pack_bf16(sums[0], sums[1]));
      put(n_, pair * kPairRows + 8, first + j, pack_bf16(sums[2], sums[3]));
    }
  }

  // Columns column to column + 7 of a group of entries: lane 4 i + j has column i of entries 2 j
  // and 2 j + 1.
  __device__ void put(int64_t width, int column, int group, uint32_t words) const {
    const uint32_t row = transpose_matrix(words);
    const int at = group * 8 + lane() / 4;
    if (at >= part_.num_entries) return;
    auto* y = static_cast<__nv_bfloat16*>(shared_ ? args_.shared.y : args_.y);
    *reinterpret_cast<uint32_t*>(y + entries_[at] * width + column + lane() % 4 * 2) = row;
  }

  template <int Groups>
  __device__ void store_floats(int pair, int first, const float (&c)[N / 2]) const {
    auto* y = static_cast<float*>(args_.shared.y) + pair * kPairRows + lane() / 4;
    const float* bias = bias_ != nullptr ? bias_ + pair * kPairRows + lane() / 4 : nullptr;
#pragma unroll
    for (int i = 0; i < Groups * 4; ++i) {
      const int at = (first + i / 4) * 8 + lane() % 4 * 2 + i % 2;
      if (at >= part_.num_entries) continue;
      const int column = i % 4 / 2 * 8;
      const float sum = bias != nullptr ? __fadd_rn(c[i], bias[column]) : c[i];
      y[int64_t{entries_[at]} * n_ + column] = sum;
    }
  }

  const ExpertGemmArgs& args_;
  const ExpertPart& part_;
  const int* entries_;
  const bool shared_;
  const float* bias_;  // of the expert
  int n_;
};

}  // namespace foretoken::cuda
