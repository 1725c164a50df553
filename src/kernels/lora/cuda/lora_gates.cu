#include "kernels/lora/cuda/lora_gates.cuh"

#include "kernels/activation_math.h"
#include "kernels/gemm/gemm.h"
#include "kernels/lora/cuda/lora_expand.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kGateThreads = 128;
constexpr int kGateBlocks = 4;  // of a multiprocessor
constexpr int kGateCols = 4;    // of a thread, and as many ups
constexpr int kGateBlockCols = kGateThreads * kGateCols;
constexpr int kGateRows = 2;  // at once

template <class T>
struct alignas(sizeof(T) * kGateCols) GateValues {
  T at[kGateCols];
};

// A tile and kGateBlockCols columns of gates and ups.
template <class T>
struct GateItem {
  LoraTile tile;
  LoraSide<T, kGateCols> gates;
  LoraSide<T, kGateCols> ups;
  int column;

  __device__ void find(const LoraExpandArgs& args, int index, int chunks) {
    tile = args.rows.tiles[index / chunks];
    column = index % chunks * kGateBlockCols + static_cast<int>(threadIdx.x) * kGateCols;
    gates.find(args, tile.adapter, 0, column);
    ups.find(args, tile.adapter, 1, column);
  }
};

// Gates and ups of kGateRows rows of y, of which those below `live` are there.
struct RawRows {
  GateValues<float> gates[kGateRows];
  GateValues<float> ups[kGateRows];

  __device__ void load(const LoraExpandArgs& args, const int32_t* rows, int live, int column) {
#pragma unroll
    for (int r = 0; r < kGateRows; ++r) {
      const int64_t row = rows[r < live ? r : 0];
      const float* from = args.y + row * args.y_stride + column / 8 * 16 + column % 8;
      gates[r] = *reinterpret_cast<const GateValues<float>*>(from);
      ups[r] = *reinterpret_cast<const GateValues<float>*>(from + 8);
    }
  }
};

__device__ void add_sums(GateValues<float>& to, const float (&sum)[kGateCols]) {
#pragma unroll
  for (int i = 0; i < kGateCols; ++i) to.at[i] += sum[i];
}

// By the factors of a thread's columns; null: by one.
__device__ void scale_columns(const float* factors, int live_cols, GateValues<float>& to) {
  if (factors == nullptr) return;
#pragma unroll
  for (int i = 0; i < kGateCols; ++i) {
    if (i < live_cols) to.at[i] = __fmul_rn(to.at[i], factors[i]);
  }
}

// The bias of gates from `bias` on.
__device__ void add_bias(const LoraExpandArgs& args, int column, const float* bias,
                         GateValues<float>& to) {
#pragma unroll
  for (int i = 0; i < kGateCols; ++i) {
    if (column + i < args.part_cols[0]) to.at[i] += bias[column + i];
  }
}

template <Activation kActivation, class T>
__device__ void store_gated(const LoraExpandArgs& args, int64_t row, int column,
                            GateValues<float> gates, GateValues<float> ups) {
  const int size = args.part_cols[0];
  if (args.bias != nullptr) {
    add_bias(args, column, args.bias, gates);
    add_bias(args, column, args.bias + size, ups);
  }
  GateValues<T> out;
#pragma unroll
  for (int i = 0; i < kGateCols; ++i) {
    out.at[i] = from_float<T>(activation_math::gated<kActivation>(gates.at[i], ups.at[i]));
  }
  T* const to = static_cast<T*>(args.gated) + row * size + column;
  if (size % kGateCols == 0) {
    *reinterpret_cast<GateValues<T>*>(to) = out;
    return;
  }
#pragma unroll
  for (int i = 0; i < kGateCols; ++i) {
    if (column + i < size) to[i] = out.at[i];
  }
}

template <Activation kActivation, class T>
__device__ void gate_rows(const LoraExpandArgs& args, const GateItem<T>& item, RawRows& raw,
                          const int32_t* rows, int live, const float* t_gates, const float* t_ups) {
  const int t_stride = lora_t_stride(args.max_rank);
  const int live_cols = args.part_cols[0] - item.column;
  float sum[kGateRows][kGateCols] = {};
  if (item.gates.rank > 0) {
    item.gates.add_to(t_gates, t_stride, sum);
#pragma unroll
    for (int r = 0; r < kGateRows; ++r) {
      add_sums(raw.gates[r], sum[r]);
      scale_columns(item.gates.factors, live_cols, raw.gates[r]);
    }
  }
  if (item.ups.rank > 0) {
    memset(sum, 0, sizeof sum);
    item.ups.add_to(t_ups, t_stride, sum);
#pragma unroll
    for (int r = 0; r < kGateRows; ++r) {
      add_sums(raw.ups[r], sum[r]);
      scale_columns(item.ups.factors, live_cols, raw.ups[r]);
    }
  }
#pragma unroll
  for (int r = 0; r < kGateRows; ++r) {
    if (r < live) {
      store_gated<kActivation, T>(args, rows[r], item.column, raw.gates[r], raw.ups[r]);
    }
  }
}

template <Activation kActivation, class T>
__global__ void __launch_bounds__(kGateThreads, kGateBlocks)
    lora_gates_kernel(LoraExpandArgs args) {
  let_next_start();
  extern __shared__ float shared_t[];  // [2, kLoraTileRows, lora_t_stride]
  const int t_stride = lora_t_stride(args.max_rank);
  float* const t_ups = shared_t + kLoraTileRows * t_stride;
  const int chunks = ceil_div(args.part_cols[0], kGateBlockCols);
  const int count = args.rows.num_tiles[1] * chunks;
  GateItem<T> item;
  if (static_cast<int>(blockIdx.x) < count) item.find(args, blockIdx.x, chunks);
  wait_for_all_before();
  for (int index = blockIdx.x; index < count; index += gridDim.x) {
    if (index != static_cast<int>(blockIdx.x)) item.find(args, index, chunks);
    const bool live = item.column < args.part_cols[0];
    const int32_t* const rows = args.rows.rows + item.tile.begin;
    RawRows raw;
    if (live) raw.load(args, rows, item.tile.count, item.column);
    gather_t(args, item.tile, 0, item.gates.rank, shared_t);
    gather_t(args, item.tile, 1, item.ups.rank, t_ups);
    __syncthreads();
    for (int done = 0; live && done < item.tile.count; done += kGateRows) {
      const int left = item.tile.count - done;
      if (done > 0) raw.load(args, rows + done, left, item.column);
      gate_rows<kActivation>(args, item, raw, rows + done, left, shared_t + done * t_stride,
                             t_ups + done * t_stride);
    }
    __syncthreads();
  }
}

template <Activation kActivation, class T>
void launch_gates(const LoraExpandArgs& args, cudaStream_t stream) {
  const auto kernel = lora_gates_kernel<kActivation, T>;
  const int64_t items = int64_t{max_lora_tiles(args.max_rows, args.max_adapters)} *
                        ceil_div(args.part_cols[0], kGateBlockCols);
  const size_t shared =
      sizeof(float) * 2 * kLoraTileRows * static_cast<size_t>(lora_t_stride(args.max_rank));
  prefer_shared_memory(kernel);
  launch_kernel(kernel, lora_blocks(items, 16), kGateThreads, shared, stream, args);
}

template <Activation kActivation>
void launch_of(const LoraExpandArgs& args, cudaStream_t stream) {
  args.dtype == DType::kBF16 ? launch_gates<kActivation, __nv_bfloat16>(args, stream)
                             : launch_gates<kActivation, float>(args, stream);
}

}  // namespace

void launch_lora_gates(const LoraExpandArgs& args, cudaStream_t stream) {
  switch (args.activation) {
    case Activation::kSilu:
      return launch_of<Activation::kSilu>(args, stream);
    case Activation::kGelu:
      return launch_of<Activation::kGelu>(args, stream);
    default:
      return launch_of<Activation::kGeluTanh>(args, stream);
  }
}

}  // namespace foretoken::cuda
