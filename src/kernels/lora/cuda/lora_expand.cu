#include "kernels/lora/cuda/lora_expand.cuh"

#include "kernels/cuda/launchers.h"
#include "kernels/lora/cuda/lora_gates.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kExpandThreads = 128;
constexpr int kExpandBlocks = 6;  // of a multiprocessor
constexpr int kExpandCols = 4;    // of a thread
constexpr int kBlockCols = kExpandThreads * kExpandCols;
constexpr int kRowsAtOnce = 2;

// Where column `column` of a product lies in a row of y.
__device__ int64_t place_of(const LoraExpandArgs& args, int part, int column) {
  if (args.weight != nullptr) return (column / 8 * 2 + part) * int64_t{8} + column % 8;
  int64_t before = 0;
  for (int i = 0; i < part; ++i) before += args.part_cols[i];
  return before + column;
}

__host__ __device__ int chunks_of(const LoraExpandArgs& args) {
  int chunks = 0;
  for (int i = 0; i < args.num_parts; ++i) chunks += ceil_div(args.part_cols[i], kBlockCols);
  return chunks;
}

// A tile and kBlockCols columns of a product.
template <class T>
struct ExpandItem {
  LoraTile tile;
  LoraSide<T, kExpandCols> side;
  int64_t place;
  int live_cols;
  int part;

  __device__ void find(const LoraExpandArgs& args, int index, int chunks) {
    tile = args.rows.tiles[index / chunks];
    int chunk = index % chunks;
    part = 0;
    while (chunk >= ceil_div(args.part_cols[part], kBlockCols)) {
      chunk -= ceil_div(args.part_cols[part++], kBlockCols);
    }
    const int column = chunk * kBlockCols + static_cast<int>(threadIdx.x) * kExpandCols;
    live_cols = args.part_cols[part] - column;
    place = place_of(args, part, column);
    side.find(args, tile.adapter, part, column);
  }
};

// kRows rows of y, of which those below `live` are there.
template <int kRows>
struct YRows {
  float* at[kRows];
  float4 values[kRows];
  bool aligned;

  __device__ void load(const LoraExpandArgs& args, const int32_t* rows, int live, int64_t place,
                       int live_cols) {
    aligned = live_cols >= kExpandCols && (place | args.y_stride) % kExpandCols == 0;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      at[r] = args.y + int64_t{r < live ? rows[r] : rows[0]} * args.y_stride + place;
      if (aligned) values[r] = *reinterpret_cast<const float4*>(at[r]);
    }
  }
  __device__ void add(const float (&sum)[kRows][kExpandCols], int live, int live_cols) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r >= live) break;
      if (aligned) {
        const float4 v = values[r];
        *reinterpret_cast<float4*>(at[r]) = {v.x + sum[r][0], v.y + sum[r][1], v.z + sum[r][2],
                                             v.w + sum[r][3]};
        continue;
      }
#pragma unroll
      for (int i = 0; i < kExpandCols; ++i) {
        if (i < live_cols) at[r][i] += sum[r][i];
      }
    }
  }
  // y = f (y - bias + sum) + bias, of the thread's columns of f and of the bias, which may be null.
  __device__ void add_scaled(const float (&sum)[kRows][kExpandCols], int live, int live_cols,
                             const float* factors, const float* bias) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r >= live) break;
#pragma unroll
      for (int i = 0; i < kExpandCols; ++i) {
        if (i >= live_cols) break;
        const float kept = bias != nullptr ? (1 - factors[i]) * bias[i] : 0.0f;
        at[r][i] = fmaf(factors[i], at[r][i] + sum[r][i], kept);
      }
    }
  }
};

template <int kRows, class T>
__device__ void add_rows(const YRows<kRows>& y, const ExpandItem<T>& item, const float* t,
                         int t_stride, int live, const float* bias) {
  float sum[kRows][kExpandCols] = {};
  item.side.add_to(t, t_stride, sum);
  if (item.side.factors == nullptr) return y.add(sum, live, item.live_cols);
  y.add_scaled(sum, live, item.live_cols, item.side.factors, bias);
}

template <class T>
__device__ void expand_item(const LoraExpandArgs& args, const ExpandItem<T>& item,
                            const int32_t* rows, float* shared_t) {
  const int t_stride = lora_t_stride(args.max_rank);
  const bool live_lane = item.live_cols > 0;
  const bool has_bias = args.bias != nullptr && args.weight == nullptr;
  const float* const bias = has_bias ? args.bias + item.place : nullptr;
  YRows<kRowsAtOnce> y;
  if (live_lane) y.load(args, rows, item.tile.count, item.place, item.live_cols);
  gather_t(args, item.tile, item.part, item.side.rank, shared_t);
  __syncthreads();
  for (int done = 0; live_lane && done < item.tile.count; done += kRowsAtOnce) {
    const int left = item.tile.count - done;
    if (done > 0) y.load(args, rows + done, left, item.place, item.live_cols);
    add_rows(y, item, shared_t + done * t_stride, t_stride, left, bias);
  }
  __syncthreads();
}

template <class T>
__global__ void __launch_bounds__(kExpandThreads, kExpandBlocks)
    lora_expand_kernel(LoraExpandArgs args) {
  let_next_start();
  extern __shared__ float shared_t[];  // [kLoraTileRows, lora_t_stride]
  const int chunks = chunks_of(args);
  const int count = *args.rows.num_tiles * chunks;
  ExpandItem<T> item;
  if (static_cast<int>(blockIdx.x) < count) item.find(args, blockIdx.x, chunks);
  wait_for_all_before();
  for (int index = blockIdx.x; index < count; index += gridDim.x) {
    if (index != static_cast<int>(blockIdx.x)) item.find(args, index, chunks);
    expand_item(args, item, args.rows.rows + item.tile.begin, shared_t);
  }
}

template <class T>
void launch_expand(const LoraExpandArgs& args, cudaStream_t stream) {
  const int64_t items = int64_t{max_lora_tiles(args.max_rows, args.max_adapters)} * chunks_of(args);
  const size_t shared =
      sizeof(float) * kLoraTileRows * static_cast<size_t>(lora_t_stride(args.max_rank));
  prefer_shared_memory(lora_expand_kernel<T>);
  launch_kernel(lora_expand_kernel<T>, lora_blocks(items, 16), kExpandThreads, shared, stream,
                args);
}

}  // namespace

void launch_lora_expand(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<LoraExpandArgs>(packed);
  if (args.gated != nullptr) return launch_lora_gates(args, stream);
  args.dtype == DType::kBF16 ? launch_expand<__nv_bfloat16>(args, stream)
                             : launch_expand<float>(args, stream);
}

}  // namespace foretoken::cuda
