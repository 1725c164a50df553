#pragma once
#include "kernels/activation_math.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/gemm/cuda/gemm_store.cuh"
#include "kernels/gemm/gemm.h"

// How a gemm kernel stores gated products; gemm_epilogue.cuh says what a kernel calls.
namespace foretoken::cuda {

// y[row, j] = activation(gate) * up of a weight packed as WeightOrder::kGateUp: the gate and the up
// of a column stand 8 rows apart in a tile of 16.
struct StoreGated {
  int size;  // columns of y

  // c: 8 gates, their 8 ups, the next 8 gates, ... Four groups of columns at a time, for which the
  // sums move up: the same short code for all of them.
  template <int Half>
  __device__ void take_rows(const GemmArgs& args, int live, int row, int n, int,
                            float (&c)[Half]) const {
    constexpr int kGroups = Half / 8;  // of 8 columns of y
    const int lane = threadIdx.x % 32;
    const int low = row + threadIdx.x % 128 / 32 * 16 + lane / 4;
    if (low - lane / 4 >= live) return;
    const int column = n / 2;  // of y
    with_activation(args.activation, [&]<Activation kActivation>() {
#pragma unroll 1
      for (int g = 0; g < kGroups / 4 * 4; g += 4) {
        take_groups<kActivation, 4>(args, live, low, column + g * 8, c);
#pragma unroll
        for (int i = 32; i < Half; ++i) c[i - 32] = c[i];
      }
      if constexpr (kGroups % 4 != 0) {
        take_groups<kActivation, kGroups % 4>(args, live, low, column + kGroups / 4 * 32, c);
      }
    });
  }

  // The same through shared memory, which the block needs no more: what a thread has in registers
  // would be as much code as there are values, which a block runs once and must fetch for it. First
  // the warpgroup that has the sums puts them there, on 16 bytes, for each of `Rows` rows
  // block_stride(Half) floats; then, after a barrier, `Threads` threads store y.
  template <int Rows, int Half>
  __device__ static void put_block(const float (&c)[Half], float* shared) {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    asm volatile("bar.sync 1, 128;" ::: "memory");  // all have read what was there
    if (Rows < 64 && thread / 32 * 16 >= Rows) return;
    float* const to = shared + (thread / 32 * 16 + thread % 32 / 4) * block_stride(Half);
#pragma unroll
    for (int i = 0; i < Half / 2; ++i) {
      if (i % 2 * 8 >= Rows) continue;
      const int offset = i % 2 * 8 * block_stride(Half) + i / 4 * kGroupFloats + i / 2 % 2 * 8;
      *reinterpret_cast<float2*>(to + offset + thread % 4 * 2) = {c[i * 2], c[i * 2 + 1]};
    }
  }
  template <int Threads, int Half>
  __device__ void store_block(const GemmArgs& args, int live, int n, const float* shared) const {
    constexpr int kGroups = Half / 8;  // of 8 columns of y
    with_activation(args.activation, [&]<Activation kActivation>() {
#pragma unroll 1
      for (int i = static_cast<int>(threadIdx.x); i < live * kGroups; i += Threads) {
        const int row = i / kGroups, group = i % kGroups;
        store_group<kActivation>(args, row, n / 2 + group * 8,
                                 shared + row * block_stride(Half) + group * kGroupFloats);
      }
    });
  }
  // use.template operator()<activation>(): one branch for all values, so that their long chains of
  // operations run side by side.
  template <class Use>
  __device__ static void with_activation(Activation activation, const Use& use) {
    switch (activation) {
      case Activation::kSilu:
        return use.template operator()<Activation::kSilu>();
      case Activation::kGelu:
        return use.template operator()<Activation::kGelu>();
      default:
        return use.template operator()<Activation::kGeluTanh>();
    }
  }

  // 8 gates, their 8 ups and a gap: eight groups that are read at once lie in different banks.
  static constexpr int kGroupFloats = 20;
  // Of a row of put_block. Rows begin 8 or 24 banks apart, so that four are written at once.
  static constexpr int block_stride(int half) {
    return (half / 8 * kGroupFloats + 7) / 16 * 16 + 8;
  }

  template <int TilesW, int TilesX>
  __device__ void take_tiles(const GemmArgs& args, int live, int row, int n, int,
                             const float (&c)[TilesW][TilesX][4]) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int w = 0; w < TilesW; ++w) {
      const int column = n / 2 + w * (kTileN / 2) + lane / 4;
#pragma unroll
      for (int x = 0; x < TilesX; ++x) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int r = row + x * 8 + lane % 4 * 2 + i;
          if (r < live && column < size) store(args, r, column, c[w][x][i], c[w][x][i + 2]);
        }
      }
    }
  }

  template <int Rows>
  __device__ void take_column(const GemmArgs& args, int live, int row, int n, int,
                              const float (&sums)[Rows]) const {
    const int column = n / 16 * 8 + n % 8;
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      const float up = __shfl_xor_sync(0xffffffffu, sums[r], 8);
      if (n % 16 < 8 && row + r < live && column < size) {
        store(args, row + r, column, sums[r], up);
      }
    }
  }

 private:
  // Four groups of 8 columns of one row, 8 values apart: 16 bytes a lane.
  __device__ void store_groups(const GemmArgs& args, bool live, int row, int column,
                               const float* c) const {
    uint32_t words[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      words[j] = pack_bf16(c[j * 8], c[j * 8 + 1]);
    }
    transpose_quad(words);
    const int to = column + static_cast<int>(threadIdx.x) % 4 * 8;
    if (!live || to >= size) return;
    *reinterpret_cast<uint4*>(static_cast<__nv_bfloat16*>(args.y) + int64_t{row} * size + to) =
        uint4{words[0], words[1], words[2], words[3]};
  }

  // 8 columns of one row, whose gates and then ups are at `from`.
  template <Activation kActivation>
  __device__ void store_group(const GemmArgs& args, int row, int column, const float* from) const {
    float values[8];  // the gates, then what they become
    float ups[8];
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
      *reinterpret_cast<float4*>(values + i) = *reinterpret_cast<const float4*>(from + i);
      *reinterpret_cast<float4*>(ups + i) = *reinterpret_cast<const float4*>(from + 8 + i);
    }
    if (args.bias != nullptr) {
#pragma unroll
      for (int i = 0; i < 8; ++i) add_bias(args, column + i, values[i], ups[i]);
    }
    activation_math::gate_all<kActivation>(values, ups);
    if (args.out_dtype == DType::kBF16 && size % 8 == 0) {
      if (column >= size) return;
      uint32_t words[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        words[j] = pack_bf16(values[j * 2], values[j * 2 + 1]);
      }
      *reinterpret_cast<uint4*>(static_cast<__nv_bfloat16*>(args.y) + int64_t{row} * size +
                                column) = uint4{words[0], words[1], words[2], words[3]};
      return;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (column + i < size) put(args, row, column + i, values[i]);
    }
  }

  // The first Groups groups of 8 columns from `column` on, of rows low and low + 8. Results take
  // the gates' places.
  template <Activation kActivation, int Groups, int Half>
  __device__ void take_groups(const GemmArgs& args, int live, int low, int column,
                              float (&c)[Half]) const {
    const int own = column + static_cast<int>(threadIdx.x) % 4 * 2;
    if (args.bias != nullptr) {
#pragma unroll
      for (int j = 0; j < Groups * 4; ++j) {
        const int gate = j / 4 * 8 + j % 4;
        add_bias(args, own + j / 4 * 8 + j % 2, c[gate], c[gate + 4]);
      }
    }
#pragma unroll
    for (int j = 0; j < Groups * 4; ++j) {
      float& gate = c[j / 4 * 8 + j % 4];
      gate = activation_math::gated<kActivation>(gate, c[j / 4 * 8 + j % 4 + 4]);
    }
    if (Groups == 4 && args.out_dtype == DType::kBF16 && size % 8 == 0) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        store_groups(args, low + i * 8 < live, low + i * 8, column, c + i * 2);
      }
      return;
    }
#pragma unroll
    for (int j = 0; j < Groups * 4; ++j) {
      const int r = low + j % 4 / 2 * 8;
      const int to = own + j / 4 * 8 + j % 2;
      if (r < live && to < size) put(args, r, to, c[j / 4 * 8 + j % 4]);
    }
  }

  __device__ void add_bias(const GemmArgs& args, int column, float& gate, float& up) const {
    if (column >= size) return;
    gate += args.bias[column];
    up += args.bias[size + column];
  }

  __device__ float value(const GemmArgs& args, int column, float gate, float up) const {
    if (args.bias != nullptr) add_bias(args, column, gate, up);
    return activation_math::gated(args.activation, gate, up);
  }

  __device__ void store(const GemmArgs& args, int row, int column, float gate, float up) const {
    put(args, row, column, value(args, column, gate, up));
  }

  __device__ void put(const GemmArgs& args, int row, int column, float value) const {
    const int64_t at = int64_t{row} * size + column;
    if (args.out_dtype == DType::kBF16) {
      static_cast<__nv_bfloat16*>(args.y)[at] = __float2bfloat16_rn(value);
    } else {
      static_cast<float*>(args.y)[at] = value;
    }
  }
};

}  // namespace foretoken::cuda
