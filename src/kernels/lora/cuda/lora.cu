#include "kernels/lora/lora.h"

#include <algorithm>

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kGroupThreads = 1024;
constexpr int kGroupWarps = kGroupThreads / 32;
constexpr int kShrinkThreads = 256;
constexpr int kShrinkRanks = 4;  // rows of a that a block multiplies at once
constexpr int kShrinkSplits = kShrinkThreads / 32 / kShrinkRanks;  // of k, fixed
constexpr int kExpandThreads = 128;
constexpr int kColsEach = 4;  // of a thread
constexpr int kExpandCols = kExpandThreads * kColsEach;
static_assert(kLoraRankStep % kShrinkRanks == 0);

// Bit i of the answer: row `first` + i has the adapter.
__device__ unsigned rows_with(const int32_t* row_adapter, int first, int rows, int adapter) {
  const int row = first + static_cast<int>(threadIdx.x) % 32;
  return __ballot_sync(~0u, row < rows && row_adapter[row] == adapter);
}

// One block. A warp counts and places the rows of an adapter at a time, in their order.
__global__ void __launch_bounds__(kGroupThreads) group_lora_kernel(GroupLoraArgs args) {
  wait_for_previous();
  __shared__ int counts[kMaxAdapters];
  __shared__ int begins[kMaxAdapters];
  __shared__ int first_tiles[kMaxAdapters];
  const int rows = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int32_t* const row_adapter = args.rows.row_adapter;
  for (int row = threadIdx.x; row < rows; row += kGroupThreads) {
    const int adapter = args.params[args.row_slot[row]].adapter - 1;
    row_adapter[row] = adapter < args.max_adapters ? adapter : -1;
  }
  __syncthreads();
  for (int adapter = warp; adapter < args.max_adapters; adapter += kGroupWarps) {
    int count = 0;
    for (int first = 0; first < rows; first += 32) {
      count += __popc(rows_with(row_adapter, first, rows, adapter));
    }
    if (lane == 0) counts[adapter] = count;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    int begin = 0, tiles = 0;
    for (int adapter = 0; adapter < args.max_adapters; ++adapter) {
      begins[adapter] = begin;
      first_tiles[adapter] = tiles;
      begin += counts[adapter];
      tiles += ceil_div(counts[adapter], kLoraTileRows);
    }
    *args.rows.num_tiles = tiles;
  }
  __syncthreads();
  for (int adapter = warp; adapter < args.max_adapters; adapter += kGroupWarps) {
    const int count = counts[adapter], begin = begins[adapter];
    for (int tile = lane; tile * kLoraTileRows < count; tile += 32) {
      const int done = tile * kLoraTileRows;
      args.rows.tiles[first_tiles[adapter] + tile] = {adapter, begin + done,
                                                      min(kLoraTileRows, count - done)};
    }
    int placed = begin;
    for (int first = 0; first < rows && placed < begin + count; first += 32) {
      const unsigned own = rows_with(row_adapter, first, rows, adapter);
      if (own >> lane & 1) {
        args.rows.rows[placed + __popc(own & ((1u << lane) - 1))] = first + lane;
      }
      placed += __popc(own);
    }
  }
}

// Eight, or where rows do not begin on 16 bytes one, of the elements at `from`.
template <int N>
__device__ void load_elements(const float* from, float (&out)[N]) {
  if constexpr (N == 8) {
    const float4 low = *reinterpret_cast<const float4*>(from);
    const float4 high = *reinterpret_cast<const float4*>(from + 4);
    out[0] = low.x, out[1] = low.y, out[2] = low.z, out[3] = low.w;
    out[4] = high.x, out[5] = high.y, out[6] = high.z, out[7] = high.w;
  } else if constexpr (N == 4) {
    const float4 all = *reinterpret_cast<const float4*>(from);
    out[0] = all.x, out[1] = all.y, out[2] = all.z, out[3] = all.w;
  } else {
    out[0] = *from;
  }
}
__device__ void widen_pair(uint32_t pair, float& low, float& high) {
  low = __uint_as_float(pair << 16);
  high = __uint_as_float(pair & 0xffff0000u);
}
template <int N>
__device__ void load_elements(const __nv_bfloat16* from, float (&out)[N]) {
  if constexpr (N == 8) {
    const uint4 all = *reinterpret_cast<const uint4*>(from);
    widen_pair(all.x, out[0], out[1]);
    widen_pair(all.y, out[2], out[3]);
    widen_pair(all.z, out[4], out[5]);
    widen_pair(all.w, out[6], out[7]);
  } else if constexpr (N == 4) {
    const uint2 all = *reinterpret_cast<const uint2*>(from);
    widen_pair(all.x, out[0], out[1]);
    widen_pair(all.y, out[2], out[3]);
  } else {
    out[0] = __bfloat162float(*from);
  }
}

// A warp's share of the products of one row of a with kRows rows of x: lane by lane a chain over k,
// then the lanes, in one order for any number of rows. The sums are lane 0's.
template <int N, int kRows, class T>
__device__ void multiply_rows(const T* a, const T* x, const int32_t* rows, int k, int split,
                              float* sums) {
  const T* x_rows[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) x_rows[r] = x + int64_t{rows[r]} * k;
  float sum[kRows] = {};
  const int lane = threadIdx.x % 32;
#pragma unroll 4
  for (int at = (split * 32 + lane) * N; at < k; at += kShrinkSplits * 32 * N) {
    float left[N];
    load_elements(a + at, left);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float right[N];
      load_elements(x_rows[r] + at, right);
#pragma unroll
      for (int i = 0; i < N; ++i) sum[r] = fmaf(left[i], right[i], sum[r]);
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) sum[r] += __shfl_xor_sync(~0u, sum[r], step);
    if (lane == 0) sums[r * kShrinkRanks] = sum[r];
  }
}

// An item is a tile, a product and kShrinkRanks rows of its a; each warp has one of these rows and
// a part of k.
template <class T, int N>
__global__ void __launch_bounds__(kShrinkThreads) lora_shrink_kernel(LoraShrinkArgs args) {
  wait_for_previous();
  __shared__ float partial[kShrinkSplits][kLoraTileRows][kShrinkRanks];
  const int groups = args.max_rank / kShrinkRanks;
  const int each = args.num_parts * groups;
  const int count = *args.rows.num_tiles * each;
  const int warp = threadIdx.x / 32;
  const int own = warp % kShrinkRanks, split = warp / kShrinkRanks;
  for (int item = blockIdx.x; item < count; item += gridDim.x) {
    const LoraTile tile = args.rows.tiles[item / each];
    const int part = item % each / groups, first = item % groups * kShrinkRanks;
    const LoraMatrix matrix = args.matrices[int64_t{tile.adapter} * args.adapter_stride + part];
    if (first >= matrix.rank) continue;
    const T* const a = static_cast<const T*>(matrix.a) + int64_t{first + own} * args.k;
    const T* const x = static_cast<const T*>(args.x);
    const int32_t* const rows = args.rows.rows + tile.begin;
    for (int done = 0; done < tile.count;) {
      float* const sums = &partial[split][done][own];
      const int left = tile.count - done;
      if (left >= 8) {
        multiply_rows<N, 8>(a, x, rows + done, args.k, split, sums);
        done += 8;
      } else if (left >= 4) {
        multiply_rows<N, 4>(a, x, rows + done, args.k, split, sums);
        done += 4;
      } else if (left >= 2) {
        multiply_rows<N, 2>(a, x, rows + done, args.k, split, sums);
        done += 2;
      } else {
        multiply_rows<N, 1>(a, x, rows + done, args.k, split, sums);
        done += 1;
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < tile.count * kShrinkRanks; i += kShrinkThreads) {
      const int row = i / kShrinkRanks, rank = i % kShrinkRanks;
      float sum = partial[0][row][rank];
#pragma unroll
      for (int s = 1; s < kShrinkSplits; ++s) sum += partial[s][row][rank];
      args.t[(int64_t{tile.begin + row} * args.num_parts + part) * args.max_rank + first + rank] =
          matrix.scale * sum;
    }
    __syncthreads();
  }
}

// What kRows rows of y take in kColsEach columns, each a chain over the rank.
template <int kRows, class T>
__device__ void expand_rows(const T* b, int64_t stride, const float* t, int rank,
                            float (&sum)[kRows][kColsEach]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int i = 0; i < kColsEach; ++i) sum[r][i] = 0;
  }
#pragma unroll 8
  for (int j = 0; j < rank; ++j) {
    float column[kColsEach];
    load_elements(b + j * stride, column);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int i = 0; i < kColsEach; ++i) {
        sum[r][i] = fmaf(column[i], t[r * rank + j], sum[r][i]);
      }
    }
  }
}

template <int kRows>
__device__ void add_to_rows(const LoraExpandArgs& args, const int32_t* rows, int64_t place,
                            int live_cols, const float (&sum)[kRows][kColsEach]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    float* const y = args.y + int64_t{rows[r]} * args.y_stride + place;
    if (live_cols >= kColsEach && (place | args.y_stride) % kColsEach == 0) {
      float4* const all = reinterpret_cast<float4*>(y);
      float4 value = *all;
      value.x += sum[r][0], value.y += sum[r][1], value.z += sum[r][2], value.w += sum[r][3];
      *all = value;
    } else {
      for (int i = 0; i < min(live_cols, kColsEach); ++i) y[i] += sum[r][i];
    }
  }
}

template <int kRows, class T>
__device__ void expand_some(const LoraExpandArgs& args, const T* b, int64_t stride, const float* t,
                            int rank, const int32_t* rows, int64_t place, int live_cols) {
  float sum[kRows][kColsEach];
  expand_rows<kRows>(b, stride, t, rank, sum);
  add_to_rows(args, rows, place, live_cols, sum);
}

// Where column `column` of a product lies in a row of y.
__device__ int64_t place_of(const LoraExpandArgs& args, int part, int column) {
  if (args.weight != nullptr) return (column / 8 * 2 + part) * int64_t{8} + column % 8;
  int64_t before = 0;
  for (int i = 0; i < part; ++i) before += args.part_cols[i];
  return before + column;
}

__host__ __device__ int chunks_of(const LoraExpandArgs& args) {
  int chunks = 0;
  for (int i = 0; i < args.num_parts; ++i) chunks += ceil_div(args.part_cols[i], kExpandCols);
  return chunks;
}

// An item is a tile and kExpandCols columns of a product.
template <class T>
__global__ void __launch_bounds__(kExpandThreads) lora_expand_kernel(LoraExpandArgs args) {
  wait_for_previous();
  extern __shared__ float shared_t[];  // [tile.count, rank]
  const int each = chunks_of(args);
  const int count = *args.rows.num_tiles * each;
  for (int item = blockIdx.x; item < count; item += gridDim.x) {
    const LoraTile tile = args.rows.tiles[item / each];
    int part = 0, chunk = item % each;
    while (chunk >= ceil_div(args.part_cols[part], kExpandCols)) {
      chunk -= ceil_div(args.part_cols[part++], kExpandCols);
    }
    const LoraMatrix matrix = args.matrices[int64_t{tile.adapter} * args.adapter_stride + part];
    if (matrix.rank == 0) continue;
    for (int i = threadIdx.x; i < tile.count * matrix.rank; i += kExpandThreads) {
      const int64_t row = tile.begin + i / matrix.rank;
      shared_t[i] = args.t[(row * args.num_parts + part) * args.max_rank + i % matrix.rank];
    }
    __syncthreads();
    const int column = chunk * kExpandCols + static_cast<int>(threadIdx.x) * kColsEach;
    const int live_cols = args.part_cols[part] - column;
    const int64_t stride = lora_stride(args.part_cols[part]);
    const T* const b = static_cast<const T*>(matrix.b) + column;
    const int64_t place = place_of(args, part, column);
    for (int done = 0; live_cols > 0 && done < tile.count;) {
      const float* const t = shared_t + done * matrix.rank;
      const int32_t* const rows = args.rows.rows + tile.begin + done;
      const int left = tile.count - done;
      if (left >= 8) {
        expand_some<8>(args, b, stride, t, matrix.rank, rows, place, live_cols);
        done += 8;
      } else if (left >= 4) {
        expand_some<4>(args, b, stride, t, matrix.rank, rows, place, live_cols);
        done += 4;
      } else if (left >= 2) {
        expand_some<2>(args, b, stride, t, matrix.rank, rows, place, live_cols);
        done += 2;
      } else {
        expand_some<1>(args, b, stride, t, matrix.rank, rows, place, live_cols);
        done += 1;
      }
    }
    __syncthreads();
  }
}

// As many blocks as there can be items, or as keep the device busy.
int blocks_for(int64_t items, int per_sm) {
  return static_cast<int>(std::min<int64_t>(items, int64_t{device_traits().num_sms} * per_sm));
}

}  // namespace

void launch_group_lora(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<GroupLoraArgs>(packed);
  launch_kernel(group_lora_kernel, 1, kGroupThreads, 0, stream, args);
}

void launch_lora_shrink(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<LoraShrinkArgs>(packed);
  const int64_t items = int64_t{max_lora_tiles(args.max_rows, args.max_adapters)} * args.num_parts *
                        (args.max_rank / kShrinkRanks);
  const int blocks = blocks_for(items, 8);
  const bool aligned = args.k % 8 == 0;
  if (args.dtype == DType::kBF16) {
    launch_kernel(
        aligned ? lora_shrink_kernel<__nv_bfloat16, 8> : lora_shrink_kernel<__nv_bfloat16, 1>,
        blocks, kShrinkThreads, 0, stream, args);
  } else {
    launch_kernel(aligned ? lora_shrink_kernel<float, 8> : lora_shrink_kernel<float, 1>, blocks,
                  kShrinkThreads, 0, stream, args);
  }
}

void launch_lora_expand(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<LoraExpandArgs>(packed);
  const int64_t items = int64_t{max_lora_tiles(args.max_rows, args.max_adapters)} * chunks_of(args);
  const size_t shared = sizeof(float) * kLoraTileRows * static_cast<size_t>(args.max_rank);
  launch_kernel(
      args.dtype == DType::kBF16 ? lora_expand_kernel<__nv_bfloat16> : lora_expand_kernel<float>,
      blocks_for(items, 16), kExpandThreads, shared, stream, args);
}

}  // namespace foretoken::cuda
