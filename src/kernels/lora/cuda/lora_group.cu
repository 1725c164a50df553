#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/lora/lora.h"

namespace foretoken::cuda {
namespace {

constexpr int kGroupThreads = 1024;
constexpr int kGroupWarps = kGroupThreads / 32;

// Bit i of the answer: row `first` + i has the adapter.
__device__ unsigned rows_with(const int32_t* row_adapter, int first, int rows, int adapter) {
  const int row = first + static_cast<int>(threadIdx.x) % 32;
  return __ballot_sync(~0u, row < rows && row_adapter[row] == adapter);
}

// Where the rows and tiles of an adapter begin, and how many rows there are.
struct LoraGroup {
  int count;
  int begin;
  int first_tile;
};

// One warp: the tiles of an adapter, named `name` there, and its rows in their order.
__device__ void place_rows(const LoraRows& all, int rows, int adapter, int name,
                           const LoraGroup& group) {
  const int lane = threadIdx.x % 32;
  for (int tile = lane; tile * kLoraTileRows < group.count; tile += 32) {
    const int done = tile * kLoraTileRows;
    all.tiles[group.first_tile + tile] = {name, group.begin + done,
                                          min(kLoraTileRows, group.count - done)};
  }
  int placed = group.begin;
  for (int first = 0; first < rows && placed < group.begin + group.count; first += 32) {
    const unsigned own = rows_with(all.row_adapter, first, rows, adapter);
    if (own >> lane & 1) all.rows[placed + __popc(own & ((1u << lane) - 1))] = first + lane;
    placed += __popc(own);
  }
}

// One block. A warp counts and places the rows of an adapter at a time, in their order; those
// without one are the last adapter's here.
__global__ void __launch_bounds__(kGroupThreads) group_lora_kernel(GroupLoraArgs args) {
  wait_for_previous();
  __shared__ LoraGroup groups[kMaxAdapters + 1];
  const bool gathered = args.row_index != nullptr;
  const int rows = live_rows(args.counts, gathered ? RowKind::kLogits : RowKind::kToken,
                             args.row_offset, args.max_rows);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int none = args.max_adapters;
  int32_t* const row_adapter = args.rows.row_adapter;
  for (int row = threadIdx.x; row < rows; row += kGroupThreads) {
    const int token_row = gathered ? args.row_index[args.row_offset + row] : row;
    const int adapter =
        lora_of_row(args.params[args.row_slot[token_row]], args.positions, token_row);
    row_adapter[row] = adapter >= 0 && adapter < none ? adapter : none;
  }
  __syncthreads();
  for (int adapter = warp; adapter <= none; adapter += kGroupWarps) {
    int count = 0;
    for (int first = 0; first < rows; first += 32) {
      count += __popc(rows_with(row_adapter, first, rows, adapter));
    }
    if (lane == 0) groups[adapter].count = count;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    int begin = 0, tiles = 0;
    for (int adapter = 0; adapter <= none; ++adapter) {
      if (adapter == none) args.rows.num_tiles[0] = tiles;
      groups[adapter].begin = begin;
      groups[adapter].first_tile = tiles;
      begin += groups[adapter].count;
      tiles += ceil_div(groups[adapter].count, kLoraTileRows);
    }
    args.rows.num_tiles[1] = tiles;
  }
  __syncthreads();
  for (int adapter = warp; adapter <= none; adapter += kGroupWarps) {
    place_rows(args.rows, rows, adapter, adapter == none ? -1 : adapter, groups[adapter]);
  }
}

}  // namespace

void launch_group_lora(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<GroupLoraArgs>(packed);
  launch_kernel(group_lora_kernel, 1, kGroupThreads, 0, stream, args);
  launch_all_ended(stream);  // later kernels find the tiles there
}

}  // namespace foretoken::cuda
