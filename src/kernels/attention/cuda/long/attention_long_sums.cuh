#pragma once
#include "kernels/attention/cuda/attention_rows.cuh"

// Sums of the splits so far that have no room in registers.
namespace foretoken::cuda {

// Four floats of every thread that computes, then its next four.
template <int Dim, int Threads>
struct KeptSums {
  static constexpr int kStride = Threads * 16;
  uint32_t at;  // shared memory, of this thread
  RowSums sums{};
  bool is_empty = true;

  // Adds what was kept to a split's sums, as merge_into does.
  __device__ void join(Partial<Dim>& part) const {
    MergeScales scales[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      scales[i] = merge_scales(sums.highest[i], part.highest[i]);
      part.highest[i] = scales[i].highest;
      part.weights[i] = merge(sums.weights[i], part.weights[i], scales[i]);
    }
#pragma unroll
    for (int d = 0; d < Dim / 8; ++d) {
      const float4 kept = is_empty ? float4{} : load(d);
      float(&values)[4] = part.values[d];
      values[0] = merge(kept.x, values[0], scales[0]);
      values[1] = merge(kept.y, values[1], scales[0]);
      values[2] = merge(kept.z, values[2], scales[1]);
      values[3] = merge(kept.w, values[3], scales[1]);
    }
  }

  __device__ void keep(const Partial<Dim>& part) {
#pragma unroll
    for (int d = 0; d < Dim / 8; ++d) store(d, part.values[d]);
    sums = part;
    is_empty = false;
  }

 private:
  __device__ float4 load(int d) const {
    float4 four;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
                 : "r"(at + d * kStride)
                 : "memory");
    return four;
  }
  __device__ void store(int d, const float (&four)[4]) const {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at + d * kStride), "f"(four[0]),
                 "f"(four[1]), "f"(four[2]), "f"(four[3])
                 : "memory");
  }
};

}  // namespace foretoken::cuda
