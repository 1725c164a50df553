#pragma once
#include <cuda.h>

#include <type_traits>

#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/tensor_map.cuh"
#include "kernels/cuda/wgmma.cuh"
#include "kernels/gemm/cuda/gemm_store_gated.cuh"

// How gemm_wide stores the products of its largest tiles: each warp lays them into 4 KB of shared
// memory of its own, from which the copy engine writes whole lines, or adds them in the L2 cache,
// while the warp goes on. The bits are those of StoreOutput and StoreGated.
namespace foretoken::cuda {

inline constexpr int kStagedRows = 16;                // of a warp
inline constexpr int kStagedBox = kStagedRows * 128;  // bytes
inline constexpr int kStagedBytes = 2 * kStagedBox;   // of a warp

// A warp's place: 16 rows from `row` on.
struct StagedWarp {
  uint8_t* staging;  // kStagedBytes on 1 KB
  int row;
  int live;

  __device__ StagedWarp(uint8_t* place, int first_row, int live_rows)
      : staging(place),
        row(first_row + static_cast<int>(threadIdx.x) % 128 / 32 * kStagedRows),
        live(live_rows) {}

  // bfloat16: Groups groups of 8 columns from n on; words(group, i): those of row lane / 4 + 8 i.
  template <int Groups, class Words>
  __device__ void store_halves(const CUtensorMap& map, int n, const Words& words) const {
    constexpr int kAtOnce = 16;  // groups, 8 in a box
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int r = lane % kStagedRows;
#pragma unroll
    for (int part = 0; part < Groups; part += kAtOnce) {
      if (lane == 0) wait_boxes_read<0>();
      __syncwarp();
#pragma unroll
      for (int j = 0; j < kAtOnce; j += 2) {
        const int group = j + lane / kStagedRows;
        const uint8_t* to =
            staging + group / 8 * kStagedBox + r * 128 + ((group % 8) ^ (r % 8)) * 16;
        const int g = part + j;
        store_matrices(shared_address(to),
                       {words(g, 0), words(g, 1), words(g + 1, 0), words(g + 1, 1)});
      }
      fence_async_proxy();
      __syncwarp();
      if (lane != 0) continue;
      store_box(&map, n + part * 8, row, staging);
      store_box(&map, n + part * 8 + 64, row, staging + kStagedBox);
      commit_boxes();
    }
  }

  // float: the chains of a wgmma of Half * 2 columns from n on, stored or added.
  template <int Half>
  __device__ void store_floats(const CUtensorMap& map, bool adds, int n,
                               const float (&c)[Half]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int r = lane / 4, t = lane % 4;
    // What is added to rows that are not live leaves them as they are.
    const bool dead[2] = {adds && row + r >= live, adds && row + r + 8 >= live};
#pragma unroll
    for (int part = 0; part < Half / 16; ++part) {  // boxes of 32 columns
      if (lane == 0) wait_boxes_read<1>();
      __syncwarp();
      uint8_t* const box = staging + part % 2 * kStagedBox;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float* from = c + part * 16 + i / 2 * 4 + i % 2 * 2;
        uint8_t* to = box + (r + i % 2 * 8) * 128 + ((i / 2 * 2 + t / 2) ^ r) * 16 + t % 2 * 8;
        *reinterpret_cast<float2*>(to) =
            dead[i % 2] ? float2{-0.0f, -0.0f} : float2{from[0], from[1]};
      }
      fence_async_proxy();
      __syncwarp();
      if (lane != 0) continue;
      if (adds) {
        add_box(&map, n + part * 32, row, box);
      } else {
        store_box(&map, n + part * 32, row, box);
      }
      commit_boxes();
    }
  }
};

struct StagedOutput {
  CUtensorMap y;

  template <int Half>
  __device__ void take_staged(const GemmArgs& args, int live, int row, int n, uint8_t* staging,
                              float (&c)[Half]) const {
    const StagedWarp warp(staging, row, live);
    if (warp.row >= live) return;
    if (args.bias != nullptr) StoreOutput::add_bias(args, n, c);
    if (args.out_dtype == DType::kF32) return warp.store_floats(y, args.add != 0, n, c);
    warp.store_halves<Half / 4>(y, n, [&](int group, int i) {
      const float* from = c + group * 4 + i * 2;
      return pack_bf16(from[0], from[1]);
    });
  }
};

struct StagedGated {
  CUtensorMap y;

  template <int Half>
  __device__ void take_staged(const GemmArgs& args, int live, int row, int n, uint8_t* staging,
                              float (&c)[Half]) const {
    const StagedWarp warp(staging, row, live);
    if (warp.row >= live) return;
    StoreGated::with_activation(args.activation, [&]<Activation kActivation>() {
      warp.store_halves<Half / 8>(y, n / 2, [&](int group, int i) {
        const float* from = c + group * 8 + i * 2;
        return pack_bf16(activation_math::gated<kActivation>(from[0], from[4]),
                         activation_math::gated<kActivation>(from[1], from[5]));
      });
    });
  }
};

// What stores in this way what an epilogue of gemm_epilogue.cuh stores; false: that one does.
inline bool make_staged(StagedOutput& staged, const StoreOutput& output, const GemmArgs& args) {
  const int per_row = args.out_dtype == DType::kF32 ? 4 : 8;  // values in 16 bytes
  return output.stride == args.n && args.n % per_row == 0 &&
         reinterpret_cast<uintptr_t>(args.y) % 16 == 0 &&
         make_output_map(staged.y, args.y, args.out_dtype, args.max_rows, args.n, kStagedRows);
}
inline bool make_staged(StagedGated& staged, const StoreGated& output, const GemmArgs& args) {
  return args.out_dtype == DType::kBF16 && args.bias == nullptr && output.size % 8 == 0 &&
         reinterpret_cast<uintptr_t>(args.y) % 16 == 0 &&
         make_output_map(staged.y, args.y, args.out_dtype, args.max_rows, output.size, kStagedRows);
}

template <class Epilogue>
inline constexpr bool kIsStaged =
    std::is_same_v<Epilogue, StagedOutput> || std::is_same_v<Epilogue, StagedGated>;

template <class Epilogue>
struct StagedOf {
  using Type = void;
};
template <>
struct StagedOf<StoreOutput> {
  using Type = StagedOutput;
};
template <>
struct StagedOf<StoreGated> {
  using Type = StagedGated;
};

}  // namespace foretoken::cuda
