#include "kernels/lora/lora_replace.h"

#include "kernels/cuda/launchers.h"
#include "kernels/cuda/mma.cuh"
#include "kernels/lora/cuda/lora_tiles.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kReplaceThreads = 256;
constexpr int kReplaceWarps = kReplaceThreads / 32;
constexpr int kReplaceBlocks = 4;  // of a multiprocessor
constexpr int kWarpCols = kTileN;
constexpr int kChainK = 32;      // two products of tensor cores
constexpr int kLoadsAtOnce = 4;  // steps of kChainK that are on their way
constexpr int kGroupRows = 8;    // rows of x of a product
constexpr int kRowGroups = kLoraTileRows / kGroupRows;

__device__ LoraWhole whole_of(const LoraReplaceArgs& args, const LoraTile& tile) {
  return args.matrices[int64_t{tile.adapter} * args.adapter_stride];
}

__device__ float minus_infinity() { return __int_as_float(0xff800000); }

__device__ void put(const LoraReplaceArgs& args, const LoraTile& tile, int count, int place,
                    int column, float sum) {
  if (place >= tile.count || column >= args.n) return;
  args.y[int64_t{args.rows.rows[tile.begin + place]} * args.n + column] =
      column < count ? args.scale * sum : minus_infinity();
}

__device__ uint4 piece_or_zeros(const __nv_bfloat16* from, bool valid) {
  return valid ? *reinterpret_cast<const uint4*>(from) : uint4{};
}

// A tile of rows and kWarpCols columns: a warp's one chain over all inputs, so that a row's sums do
// not depend on the others. A lane has 8 neighbouring inputs of each step, the same of all
// operands.
struct ReplacedCols {
  const LoraReplaceArgs& args;
  LoraTile tile;
  LoraWhole whole;
  int first;

  __device__ const __nv_bfloat16* row_of_m(int row) const {
    return static_cast<const __nv_bfloat16*>(whole.rows) + int64_t{first + row} * args.k;
  }

  __device__ void multiply() const {
    const int lane = threadIdx.x % 32, row = lane / 4;
    const __nv_bfloat16* x[kRowGroups];
    bool live[kRowGroups];
#pragma unroll
    for (int g = 0; g < kRowGroups; ++g) {
      const int place = g * kGroupRows + row;
      live[g] = place < tile.count;
      x[g] = static_cast<const __nv_bfloat16*>(args.x) +
             (live[g] ? int64_t{args.rows.rows[tile.begin + place]} * args.k : 0);
    }
    const bool low_live = first + row < whole.count, high_live = first + row + 8 < whole.count;
    const __nv_bfloat16 *low = row_of_m(low_live ? row : 0),
                        *high = row_of_m(high_live ? row + 8 : 0);
    float c[kRowGroups][4] = {};
    for (int begin = lane % 4 * 8; begin - lane % 4 * 8 < args.k; begin += kChainK * kLoadsAtOnce) {
      uint4 a0[kLoadsAtOnce], a1[kLoadsAtOnce];
#pragma unroll
      for (int step = 0; step < kLoadsAtOnce; ++step) {
        const int at = begin + step * kChainK;
        a0[step] = piece_or_zeros(low + at, low_live && at < args.k);
        a1[step] = piece_or_zeros(high + at, high_live && at < args.k);
      }
#pragma unroll
      for (int step = 0; step < kLoadsAtOnce; ++step) {
        const int at = begin + step * kChainK;
#pragma unroll
        for (int g = 0; g < kRowGroups; ++g) {
          const uint4 b = piece_or_zeros(x[g] + at, live[g] && at < args.k);
          mma_bf16(c[g], a0[step].x, a1[step].x, a0[step].y, a1[step].y, b.x, b.y);
          mma_bf16(c[g], a0[step].z, a1[step].z, a0[step].w, a1[step].w, b.z, b.w);
        }
      }
    }
#pragma unroll
    for (int g = 0; g < kRowGroups; ++g) {
      const int place = g * kGroupRows + lane % 4 * 2, column = first + row;
      put(args, tile, whole.count, place, column, c[g][0]);
      put(args, tile, whole.count, place + 1, column, c[g][1]);
      put(args, tile, whole.count, place, column + 8, c[g][2]);
      put(args, tile, whole.count, place + 1, column + 8, c[g][3]);
    }
  }
};

__global__ void __launch_bounds__(kReplaceThreads)
    lora_replace_kernel(const __grid_constant__ LoraReplaceArgs args) {
  wait_for_previous();
  const int pieces = ceil_div(args.n, kWarpCols);
  const int64_t count = int64_t{*args.rows.num_tiles} * pieces;
  const int64_t warps = int64_t{gridDim.x} * kReplaceWarps;
  for (int64_t index = int64_t{blockIdx.x} * kReplaceWarps + threadIdx.x / 32; index < count;
       index += warps) {
    const LoraTile tile = args.rows.tiles[index / pieces];
    const LoraWhole whole = whole_of(args, tile);
    if (whole.rows == nullptr) continue;
    ReplacedCols{args, tile, whole, static_cast<int>(index % pieces) * kWarpCols}.multiply();
  }
}

// For float, and for rows that do not begin on 16 bytes: a warp has a column, its lanes inputs.
template <class T>
__global__ void __launch_bounds__(kReplaceThreads) lora_replace_plain_kernel(LoraReplaceArgs args) {
  wait_for_previous();
  const int64_t count = int64_t{*args.rows.num_tiles} * args.n;
  const int64_t warps = int64_t{gridDim.x} * kReplaceWarps;
  const int lane = threadIdx.x % 32;
  for (int64_t index = int64_t{blockIdx.x} * kReplaceWarps + threadIdx.x / 32; index < count;
       index += warps) {
    const LoraTile tile = args.rows.tiles[index / args.n];
    const LoraWhole whole = whole_of(args, tile);
    if (whole.rows == nullptr) continue;
    const int column = static_cast<int>(index % args.n);
    const T* m = static_cast<const T*>(whole.rows) + int64_t{column} * args.k;
    for (int place = 0; place < tile.count; ++place) {
      const T* x =
          static_cast<const T*>(args.x) + int64_t{args.rows.rows[tile.begin + place]} * args.k;
      float sum = 0;
      for (int i = lane; column < whole.count && i < args.k; i += 32) {
        sum = fmaf(to_float(m[i]), to_float(x[i]), sum);
      }
#pragma unroll
      for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
      if (lane == 0) put(args, tile, whole.count, place, column, sum);
    }
  }
}

// A block takes a row at a time.
template <class T>
__global__ void __launch_bounds__(kReplaceThreads) lora_replace_rows_kernel(LoraReplaceArgs args) {
  wait_for_previous();
  const int count = *args.rows.num_tiles * kLoraTileRows;
  for (int index = blockIdx.x; index < count; index += gridDim.x) {
    const LoraTile tile = args.rows.tiles[index / kLoraTileRows];
    const LoraWhole whole = whole_of(args, tile);
    if (whole.rows == nullptr || index % kLoraTileRows >= tile.count) continue;
    const int64_t row = args.rows.rows[tile.begin + index % kLoraTileRows];
    const int own = args.token_ids[row];
    const T* from = static_cast<const T*>(whole.rows) +
                    int64_t{own >= 0 && own < whole.count ? own : 0} * args.n;
    for (int c = threadIdx.x; c < args.n; c += kReplaceThreads) {
      args.y[row * args.n + c] = args.scale * to_float(from[c]);
    }
  }
}

}  // namespace

void launch_lora_replace(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<LoraReplaceArgs>(packed);
  const bool is_bf16 = args.dtype == DType::kBF16;
  const int64_t tiles = max_lora_tiles(args.max_rows, args.max_adapters);
  if (args.token_ids != nullptr) {
    const auto kernel =
        is_bf16 ? lora_replace_rows_kernel<__nv_bfloat16> : lora_replace_rows_kernel<float>;
    launch_kernel(kernel, lora_blocks(tiles * kLoraTileRows, 8), kReplaceThreads, 0, stream, args);
  } else if (is_bf16 && args.k % 8 == 0) {
    const int64_t items = tiles * ceil_div(args.n, kWarpCols);
    launch_kernel(lora_replace_kernel, lora_blocks(ceil_div(items, kReplaceWarps), kReplaceBlocks),
                  kReplaceThreads, 0, stream, args);
  } else {
    const auto kernel =
        is_bf16 ? lora_replace_plain_kernel<__nv_bfloat16> : lora_replace_plain_kernel<float>;
    const int64_t items = tiles * args.n;
    launch_kernel(kernel, lora_blocks(ceil_div(items, kReplaceWarps), kReplaceBlocks),
                  kReplaceThreads, 0, stream, args);
  }
}

}  // namespace foretoken::cuda
