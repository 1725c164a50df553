#include "kernels/linear/wkv.h"

#include <algorithm>

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/linear/cuda/state_rows.cuh"

namespace foretoken::cuda {
namespace {

// A warp has so many columns of one head's S, one a lane, through all rows of a run.
constexpr int kColumns = 32;
constexpr int kKeepThreads = 128;
constexpr int kVectors = 5;  // keys, decays, removed, returned, queries

__device__ float* pending_row(const WkvArgs& args, int slot, int position) {
  const int64_t row = int64_t{slot} * args.pending_rows + position % args.pending_rows;
  return args.pending + row * args.shape.update_size();
}

// A row's vectors of a head on their way to shared memory: kKeys / 32 numbers of each a lane.
template <int kKeys>
struct WkvFetch {
  float at[kVectors][kKeys / kColumns];
  float v;

  // `packed`: a row of LinearShape from its keys on; q: its queries, or null.
  __device__ void load(const LinearShape& shape, int head, int column, const float* packed,
                       const float* q) {
    const int before = shape.k_offset(), keys = head * shape.key_dim;
    const float* from[kVectors] = {packed + keys, packed + (shape.decay_offset() - before + keys),
                                   packed + (shape.removed_offset() - before + keys),
                                   packed + (shape.returned_offset() - before + keys),
                                   q != nullptr ? q + keys : packed + keys};
#pragma unroll
    for (int j = 0; j < kKeys / kColumns; ++j) {
      const int key = j * kColumns + threadIdx.x;
#pragma unroll
      for (int n = 0; n < kVectors; ++n) at[n][j] = key < shape.key_dim ? from[n][key] : 0.0f;
    }
    const float* values = packed + (shape.v_offset() - before) + head * shape.value_dim;
    v = column < shape.value_dim ? values[column] : 0.0f;
  }
  __device__ void put(float (&row)[kVectors][kKeys]) const {
    __syncwarp();
#pragma unroll
    for (int n = 0; n < kVectors; ++n) {
#pragma unroll
      for (int j = 0; j < kKeys / kColumns; ++j) row[n][j * kColumns + threadIdx.x] = at[n][j];
    }
    __syncwarp();
  }
};

// A lane's column of S.
template <int kKeys>
struct WkvColumn {
  float s[kKeys];

  static __device__ float* memory(const WkvArgs& args, int slot, int head, int column) {
    return args.states + slot * args.shape.state_size() +
           int64_t{head} * args.shape.key_dim * args.shape.value_dim + column;
  }
  __device__ void load(const WkvArgs& args, const float* from, bool reads) {
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      s[i] = reads && i < args.shape.key_dim ? from[int64_t{i} * args.shape.value_dim] : 0.0f;
    }
  }
  __device__ void store(const WkvArgs& args, float* to) const {
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      if (i < args.shape.key_dim) to[int64_t{i} * args.shape.value_dim] = s[i];
    }
  }
  // Returns S^T q.
  __device__ float apply(const float (&row)[kVectors][kKeys], float v) {
    float known = 0, sum = 0;
#pragma unroll
    for (int i = 0; i < kKeys; ++i) known = fmaf(s[i], row[2][i], known);
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      s[i] = fmaf(v, row[0][i], fmaf(known, row[3][i], __fmul_rn(s[i], row[1][i])));
      sum = fmaf(s[i], row[4][i], sum);
    }
    return sum;
  }
};

// Behind the last row of the run that begins with `row`; all lanes call it.
__device__ int run_end(const StateRows& rows, int row) {
  int end = row + 1;
  for (int found = 32; found == 32; end += found) {
    const uint32_t inside =
        __ballot_sync(0xffffffffu, rows.same_run(row, end + static_cast<int>(threadIdx.x)));
    found = inside == 0xffffffffu ? 32 : __ffs(~inside) - 1;
  }
  return end;
}

template <int kKeys>
__global__ void __launch_bounds__(kColumns) wkv_kernel(WkvArgs args) {
  __shared__ float shared[kVectors][kKeys];
  wait_for_previous();
  const LinearShape& shape = args.shape;
  const StateRows rows = rows_of(args);
  const int parts = ceil_div(shape.value_dim, kColumns);
  const int head = blockIdx.x / parts;
  const int column = blockIdx.x % parts * kColumns + threadIdx.x;
  const bool has_column = column < shape.value_dim;
  WkvColumn<kKeys> state;
  WkvFetch<kKeys> next;
  for (int first = blockIdx.y; first < rows.count; first += gridDim.y) {
    if (rows.continues(first)) continue;
    const int slot = args.row_slot[first], begin = args.positions[first];
    const int count = run_end(rows, first) - first;
    const int len = known_len(args.slots, slot, begin + count, args.pending_rows);
    const StateRun run = state_run(begin, count, args.committed[slot], len, args.pending_rows);
    float* memory = WkvColumn<kKeys>::memory(args, slot, head, column);
    const auto fetch = [&](int position) {
      if (position >= run.end) return;
      const float* x = args.x + int64_t{first + position - begin} * shape.row_size();
      const bool own = position >= begin;
      next.load(shape, head, column, own ? x + shape.k_offset() : pending_row(args, slot, position),
                own ? x : nullptr);
    };
    state.load(args, memory, run.from > 0 && has_column);
    fetch(run.from);
    for (int at = run.from; at < run.end; ++at) {
      if (at == run.keep && run.keep > run.from && has_column) state.store(args, memory);
      const float v = next.v;
      next.put(shared);
      fetch(at + 1);
      const float sum = state.apply(shared, v);
      if (at < begin || !has_column) continue;
      args.out[int64_t{first + at - begin} * shape.v_size() + head * shape.value_dim + column] =
          sum;
    }
    if (run.keep == run.end && has_column) state.store(args, memory);
  }
}

// What the next run goes on from, once no block reads what this one went on from.
__global__ void __launch_bounds__(kKeepThreads) keep_wkv_kernel(WkvArgs args) {
  wait_for_previous();
  const StateRows rows = rows_of(args);
  const int row = blockIdx.x;
  if (row >= rows.count) return;
  const int slot = args.row_slot[row], position = args.positions[row];
  const int len = known_len(args.slots, slot, position + 1, args.pending_rows);
  const int thread = blockIdx.y * kKeepThreads + threadIdx.x;
  if (stays_pending(rows, row, len, args.pending_rows)) {
    const float* from = args.x + int64_t{row} * args.shape.row_size() + args.shape.k_offset();
    float* to = pending_row(args, slot, position);
    const int size = args.shape.update_size();
    for (int i = thread; i < size; i += gridDim.y * kKeepThreads) to[i] = from[i];
  }
  if (thread == 0 && !rows.continues(row + 1)) {
    args.committed[slot] = kept_behind(rows, row, args.committed[slot], len);
  }
}

template <int kKeys>
void launch(const WkvArgs& args, cudaStream_t stream) {
  const int parts = ceil_div(args.shape.value_dim, kColumns);
  const dim3 grid(args.shape.value_heads * parts, std::min(args.max_rows, kMaxRunners));
  launch_kernel(wkv_kernel<kKeys>, grid, kColumns, 0, stream, args);
  const int pieces = std::min(8, ceil_div(args.shape.update_size(), 4 * kKeepThreads));
  launch_kernel(keep_wkv_kernel, dim3(args.max_rows, pieces), kKeepThreads, 0, stream, args);
}

}  // namespace

void launch_wkv(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<WkvArgs>(packed);
  if (args.shape.key_dim <= 32) return launch<32>(args, stream);
  args.shape.key_dim <= 64 ? launch<64>(args, stream) : launch<kMaxWkvKeyDim>(args, stream);
}

}  // namespace foretoken::cuda
