#pragma once
#include <algorithm>

#include "kernels/activation_math.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/gemm.h"
#include "kernels/sample_math.h"

// What becomes of the products of a gemm kernel. take_tiles gets a warp's m16n8k16 chains: TilesW x
// 16 rows of the weight from n on, TilesX x 8 rows of x from `row` on. take_column gets one row n
// of the weight for each lane and Rows rows of x from `row` on. take_rows gets a warpgroup's wgmma
// chains: 64 rows of x from `row` on, Half * 2 rows of the weight from n on. `column` counts the
// warps (the blocks) along n.
namespace foretoken::cuda {

// Lanes 4 g .. 4 g + 3 hold a 4 x 4 matrix, a row each; afterwards a column each.
__device__ inline void transpose_quad(uint32_t (&words)[4]) {
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool upper = (threadIdx.x & bit) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & bit) != 0) continue;
      const uint32_t got = __shfl_xor_sync(0xffffffffu, upper ? words[i] : words[i | bit], bit);
      (upper ? words[i] : words[i | bit]) = got;
    }
  }
}

// y[row, n] = product + bias[n], or added to it.
struct StoreOutput {
  template <int Half>
  __device__ void take_rows(const GemmArgs& args, int live, int row, int n, int,
                            float (&c)[Half]) const {
    const int lane = threadIdx.x % 32;
    const int low = row + threadIdx.x % 128 / 32 * 16 + lane / 4;
    if (low - lane / 4 >= live) return;
    if (args.bias != nullptr) add_bias(args, n, c);
    constexpr int kGroups = Half / 4;  // of 8 columns
    const bool bf16 = args.out_dtype == DType::kBF16;
    if (!bf16 && args.n % 2 == 0) return store_floats(args, live, low, n + lane % 4 * 2, c);
#pragma unroll
    for (int j = 0; j < kGroups; j += 4) {
      if (bf16 && args.n % 8 == 0 && j + 4 <= kGroups) {
        for (int i = 0; i < 2; ++i) {
          store_groups(args, live, low + i * 8, n + j * 8, c + j * 4 + i * 2);
        }
      } else {
        store_singly(args, live, low, n + lane % 4 * 2, c, j);
      }
    }
  }

  template <int TilesW, int TilesX>
  __device__ void take_tiles(const GemmArgs& args, int live, int row, int n, int,
                             const float (&c)[TilesW][TilesX][4]) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int w = 0; w < TilesW; ++w) {
#pragma unroll
      for (int x = 0; x < TilesX; ++x) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int r = row + x * 8 + lane % 4 * 2 + i % 2;
          const int to = n + w * kTileN + lane / 4 + i / 2 * 8;
          if (r < live && to < args.n) store(args, r, to, c[w][x][i]);
        }
      }
    }
  }

  template <int Rows>
  __device__ void take_column(const GemmArgs& args, int live, int row, int n, int,
                              const float (&sums)[Rows]) const {
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      if (row + r < live && n < args.n) store(args, row + r, n, sums[r]);
    }
  }

 private:
  template <int Half>
  __device__ static void add_bias(const GemmArgs& args, int n, float (&c)[Half]) {
#pragma unroll
    for (int j = 0; j < Half / 4; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int from = n + j * 8 + threadIdx.x % 4 * 2 + i;
        const float bias = from < args.n ? args.bias[from] : 0.0f;
        c[j * 4 + i] += bias;
        c[j * 4 + i + 2] += bias;
      }
    }
  }

  // Rows row and row + 8; n: this lane's first column.
  template <int Half>
  __device__ static void store_floats(const GemmArgs& args, int live, int row, int n,
                                      const float (&c)[Half]) {
    constexpr int kGroups = Half / 4;               // of 8 columns
    constexpr int kAtOnce = std::min(16, kGroups);  // as registers have room for
#pragma unroll
    for (int j = 0; j < kGroups; j += kAtOnce) {
      store_floats<kAtOnce>(args, live, row, n, c, j);
    }
  }

  // Up to Groups groups from `group` on. All loads go first: none may overtake a store.
  template <int Groups, int Half>
  __device__ static void store_floats(const GemmArgs& args, int live, int row, int n,
                                      const float (&c)[Half], int group) {
    const auto place = [&](int i) {  // i: group and row
      const int64_t r = row + i % 2 * 8;
      const int to = n + (group + i / 2) * 8;
      const bool valid = group + i / 2 < Half / 4 && r < live && to < args.n;
      return valid ? reinterpret_cast<float2*>(static_cast<float*>(args.y) + r * args.n + to)
                   : nullptr;
    };
    float2 sums[2 * Groups] = {};
#pragma unroll
    for (int i = 0; i < 2 * Groups; ++i) {
      const float2* from = place(i);
      if (args.add != 0 && from != nullptr) sums[i] = *from;
    }
#pragma unroll
    for (int i = 0; i < 2 * Groups; ++i) {
      float2* to = place(i);
      if (to == nullptr) continue;
      const float2 products{c[(group + i / 2) * 4 + i % 2 * 2],
                            c[(group + i / 2) * 4 + i % 2 * 2 + 1]};
      *to = args.add != 0 ? float2{sums[i].x + products.x, sums[i].y + products.y} : products;
    }
  }

  template <int Half>
  __device__ static void store_singly(const GemmArgs& args, int live, int row, int n,
                                      const float (&c)[Half], int group) {
#pragma unroll
    for (int i = group * 4; i < group * 4 + 16; ++i) {
      if (i >= Half) continue;
      const int r = row + i % 4 / 2 * 8;
      const int to = n + i / 4 * 8 + i % 2;
      if (r < live && to < args.n) put(args, r, to, c[i]);
    }
  }

  // Four groups of 8 columns of one row: 16 bytes a lane.
  __device__ static void store_groups(const GemmArgs& args, int live, int row, int n,
                                      const float* c) {
    uint32_t words[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      words[j] = pack_bf16(c[j * 4], c[j * 4 + 1]);
    }
    transpose_quad(words);
    const int to = n + static_cast<int>(threadIdx.x) % 4 * 8;
    if (row >= live || to >= args.n) return;
    *reinterpret_cast<uint4*>(static_cast<__nv_bfloat16*>(args.y) + int64_t{row} * args.n + to) =
        uint4{words[0], words[1], words[2], words[3]};
  }

  __device__ static void store(const GemmArgs& args, int row, int n, float value) {
    if (args.bias != nullptr) value += args.bias[n];
    put(args, row, n, value);
  }

  __device__ static void put(const GemmArgs& args, int row, int n, float value) {
    const int64_t at = int64_t{row} * args.n + n;
    if (args.out_dtype == DType::kBF16) {
      static_cast<__nv_bfloat16*>(args.y)[at] = __float2bfloat16_rn(value);
    } else {
      float& y = static_cast<float*>(args.y)[at];
      y = args.add != 0 ? y + value : value;
    }
  }
};

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

  // use.template operator()<activation>(): one branch for all values, so that their long chains of
  // operations run side by side.
  template <class Use>
  __device__ static void with_activation(Activation activation, const Use& use) {
    switch (activation) {
      case Activation::kSilu:
        return use.template operator()<Activation::kSilu>();
      case Activation::kGelu:
        return use.template operator()<Activation::kGelu>();
      case Activation::kGeluTanh:
        return use.template operator()<Activation::kGeluTanh>();
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

// Nothing is stored but each warp's best product of each row of x, as a key that orders like
// (product, lower n); 0: it has none.
struct KeepBest {
  const int32_t* id_map;  // [n] or null: rows of the weight with a negative entry do not count
  uint64_t* keys;         // [max_rows, num_columns]
  int num_columns;        // warps along n; those beyond hold nothing

  template <int Half>
  __device__ void take_rows(const GemmArgs& args, int live, int row, int n, int column,
                            float (&c)[Half]) const {
    const int lane = threadIdx.x % 32;
    const int from = n + lane % 4 * 2;
    if (id_map != nullptr || n + Half * 2 > args.n) drop_others(args, from, c);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float product = -INFINITY;
      int place = 0;
#pragma unroll
      for (int j = 0; j < Half / 2; ++j) {
        const float other = c[j / 2 * 4 + i * 2 + j % 2];
        if (other > product) {  // the first of equal ones
          product = other;
          place = from + j / 2 * 8 + j % 2;
        }
      }
      uint64_t best = key_of(args, place, product);
      for (int offset = 1; offset < 4; offset *= 2) {
        best = max(best, __shfl_xor_sync(0xffffffffu, best, offset));
      }
      if (lane % 4 == 0) {
        keep(live, row + threadIdx.x % 128 / 32 * 16 + lane / 4 + i * 8, column, best);
      }
    }
  }

  template <int TilesW, int TilesX>
  __device__ void take_tiles(const GemmArgs& args, int live, int row, int n, int column,
                             const float (&c)[TilesW][TilesX][4]) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int x = 0; x < TilesX; ++x) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        uint64_t best = 0;
#pragma unroll
        for (int w = 0; w < TilesW; ++w) {
          const int low = n + w * kTileN + lane / 4;
          best = max(best, key_of(args, low, c[w][x][i]));
          best = max(best, key_of(args, low + 8, c[w][x][i + 2]));
        }
        for (int offset = 4; offset < 32; offset *= 2) {
          best = max(best, __shfl_xor_sync(0xffffffffu, best, offset));
        }
        if (lane < 4) keep(live, row + x * 8 + lane * 2 + i, column, best);
      }
    }
  }

  template <int Rows>
  __device__ void take_column(const GemmArgs& args, int live, int row, int n, int column,
                              const float (&sums)[Rows]) const {
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      uint64_t best = key_of(args, n, sums[r]);
      for (int offset = 1; offset < 32; offset *= 2) {
        best = max(best, __shfl_xor_sync(0xffffffffu, best, offset));
      }
      if (threadIdx.x % 32 == 0) keep(live, row + r, column, best);
    }
  }

 private:
  __device__ bool admits(const GemmArgs& args, int n) const {
    return n < args.n && (id_map == nullptr || id_map[n] >= 0);
  }

  template <int Half>
  __device__ void drop_others(const GemmArgs& args, int from, float (&c)[Half]) const {
#pragma unroll
    for (int j = 0; j < Half / 2; ++j) {
      if (admits(args, from + j / 2 * 8 + j % 2)) continue;
      c[j / 2 * 4 + j % 2] = -INFINITY;
      c[j / 2 * 4 + j % 2 + 2] = -INFINITY;
    }
  }

  __device__ uint64_t key_of(const GemmArgs& args, int n, float product) const {
    if (!(product > -INFINITY) || !admits(args, n)) return 0;
    return (uint64_t{sample_math::ordered_key(product)} << 32) | ~static_cast<uint32_t>(n);
  }

  __device__ void keep(int live, int row, int column, uint64_t key) const {
    if (row < live && column < num_columns) keys[int64_t{row} * num_columns + column] = key;
  }
};

// Calls launch(args, epilogue) with what gemm stores. The args of a gated product count the rows of
// the packed matrix in n.
template <class Launch>
auto with_store(const GemmArgs& args, const Launch& launch) {
  if (args.gated == 0) {
    StoreOutput epilogue;
    return launch(args, epilogue);
  }
  GemmArgs all = args;
  all.n = static_cast<int32_t>(packed_rows(args.n, WeightOrder::kGateUp));
  StoreGated epilogue{args.n / 2};
  return launch(all, epilogue);
}

// Tells the epilogue that a warp takes `width` rows of the weight.
inline void set_width(StoreOutput&, const GemmArgs&, int) {}
inline void set_width(StoreGated&, const GemmArgs&, int) {}
inline void set_width(KeepBest& best, const GemmArgs& args, int width) {
  best.num_columns = ceil_div(args.n, width);
}

}  // namespace foretoken::cuda
