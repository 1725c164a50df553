#include "kernels/linear/linear_attention.h"

#include <algorithm>

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/linear/state_run.h"

namespace foretoken::cuda {
namespace {

// A block has a slab of columns of one head's S: a lane has a column, a warp a part of its rows,
// which each thread keeps in registers.
constexpr int kSlab = 32;
constexpr int kParts = 4;
constexpr int kThreads = kSlab * kParts;
constexpr int kMaxRunners = 256;  // blocks of a slab, which share the runs of a launch
constexpr int kKeepThreads = 256;
constexpr int kPerThread = kMaxLinearKeyDim / kThreads;  // of a row's keys

__device__ StateRows rows_of(const LinearAttentionArgs& args) {
  return {args.positions, args.row_slot, live_rows(args.counts, RowKind::kToken, 0, args.max_rows)};
}

__device__ float* pending_row(const LinearAttentionArgs& args, int slot, int position) {
  const int64_t row = int64_t{slot} * args.pending_rows + position % args.pending_rows;
  return args.pending + row * args.shape.update_size();
}

struct Slab {
  int head;
  int key_head;
  int column;  // of this lane
};

// What a row does to a slab, in shared memory; zero behind key_dim.
struct SlabRow {
  float k[kMaxLinearKeyDim];
  float q[kMaxLinearKeyDim];
  float decay[kMaxLinearKeyDim];
  float v[kSlab];
  float scale;
};

struct Shared {
  SlabRow rows[2];
  float known[kParts][kSlab];
  float answers[2][kParts][kSlab];
};

// A thread's part of a row on its way there.
struct RowPart {
  float k[kPerThread];
  float q[kPerThread];
  float decay[kPerThread];
  float v;
  float scale;
};

// `packed`: the row from its keys on. q: of the slab's key head.
__device__ RowPart fetch(const LinearAttentionArgs& args, const Slab& slab, const float* packed,
                         const float* q) {
  const LinearShape& shape = args.shape;
  const float* decays = packed + (shape.decay_offset() - shape.k_offset() +
                                  slab.head * (shape.channel_decay ? shape.key_dim : 1));
  RowPart part;
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int i = threadIdx.x + j * kThreads;
    const bool live = i < shape.key_dim;
    part.k[j] = live ? packed[slab.key_head * shape.key_dim + i] : 0.0f;
    part.q[j] = live ? q[i] : 0.0f;
    part.decay[j] = live ? decays[shape.channel_decay ? i : 0] : 0.0f;
  }
  part.v =
      slab.column < shape.value_dim
          ? packed[shape.v_offset() - shape.k_offset() + slab.head * shape.value_dim + slab.column]
          : 0.0f;
  part.scale = shape.scaled ? packed[shape.scale_offset() - shape.k_offset() + slab.head] : 1.0f;
  return part;
}

__device__ void put(SlabRow& row, const RowPart& part) {
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int i = threadIdx.x + j * kThreads;
    row.k[i] = part.k[j];
    row.q[i] = part.q[j];
    row.decay[i] = part.decay[j];
  }
  if (threadIdx.x < kSlab) row.v[threadIdx.x] = part.v;
  if (threadIdx.x == 0) row.scale = part.scale;
}

__device__ float sum_of_parts(const float (&parts)[kParts][kSlab], int lane) {
  return (parts[0][lane] + parts[1][lane]) + (parts[2][lane] + parts[3][lane]);
}

// A thread's part of a column of S.
template <int Rows>
struct ColumnPart {
  float s[Rows];
  int first;  // of the rows of S

  __device__ float* place(const LinearAttentionArgs& args, const Slab& slab, int slot,
                          int t) const {
    const LinearShape& shape = args.shape;
    const int64_t row = int64_t{slab.head} * shape.key_dim + first + t;
    return args.states + slot * shape.state_size() + row * shape.value_dim + slab.column;
  }
  __device__ bool has(const LinearAttentionArgs& args, const Slab& slab, int t) const {
    return first + t < args.shape.key_dim && slab.column < args.shape.value_dim;
  }
  __device__ void load(const LinearAttentionArgs& args, const Slab& slab, int slot, bool is_zero) {
#pragma unroll
    for (int t = 0; t < Rows; ++t) {
      s[t] = !is_zero && has(args, slab, t) ? *place(args, slab, slot, t) : 0.0f;
    }
  }
  __device__ void store(const LinearAttentionArgs& args, const Slab& slab, int slot) const {
#pragma unroll
    for (int t = 0; t < Rows; ++t) {
      if (has(args, slab, t)) *place(args, slab, slot, t) = s[t];
    }
  }
  // Its part of S^T (decay * k).
  __device__ float known(const SlabRow& row) const {
    float sum = 0;
#pragma unroll
    for (int t = 0; t < Rows; ++t) {
      sum = fmaf(s[t] * row.decay[first + t], row.k[first + t], sum);
    }
    return sum;
  }
  // S = decay * S + k (x) update; returns its part of S^T q.
  __device__ float apply(const SlabRow& row, float update) {
    float sum = 0;
#pragma unroll
    for (int t = 0; t < Rows; ++t) {
      s[t] = fmaf(row.k[first + t], update, s[t] * row.decay[first + t]);
      sum = fmaf(s[t], row.q[first + t], sum);
    }
    return sum;
  }
};

__device__ void answer(const LinearAttentionArgs& args, const Slab& slab, int row, float value,
                       float v) {
  if (threadIdx.x >= kSlab || slab.column >= args.shape.value_dim) return;
  if (args.skip != nullptr) value = fmaf(args.skip[slab.head], v, value);
  args.out[int64_t{row} * args.shape.v_size() + slab.head * args.shape.value_dim + slab.column] =
      value;
}

// Whether S behind `position`, which the run reaches, is to be kept. `len`: known tokens; without
// slots it counts from the run's end.
__device__ bool keeps_before(const LinearAttentionArgs& args, const StateRows& rows, int first_row,
                             int len, int position) {
  if (args.slots != nullptr) return position == len - 1;
  const int last = first_row + position + args.pending_rows - 1 - args.positions[first_row];
  return last >= first_row && rows.same_run(first_row, last) && !rows.same_run(first_row, last + 1);
}

// The run that begins with `first_row`.
template <int Rows>
__device__ void run_slab(const LinearAttentionArgs& args, const StateRows& rows, const Slab& slab,
                         int first_row, Shared& shared) {
  const LinearShape& shape = args.shape;
  const int slot = args.row_slot[first_row], begin = args.positions[first_row];
  const int len = args.slots != nullptr ? args.slots[slot].len : 0;
  const int from = state_run(begin, 1, args.committed[slot], len, args.pending_rows).from;
  const int lane = threadIdx.x % kSlab, part = threadIdx.x / kSlab;
  ColumnPart<Rows> column;
  column.first = part * Rows;
  column.load(args, slab, slot, from == 0);
  const auto fetch_at = [&](int position) {
    if (position < begin) {
      const float* packed = pending_row(args, slot, position);
      return fetch(args, slab, packed, packed + slab.key_head * shape.key_dim);
    }
    const float* x = args.x + int64_t{first_row + position - begin} * shape.row_size();
    return fetch(args, slab, x + shape.k_offset(), x + slab.key_head * shape.key_dim);
  };
  put(shared.rows[0], fetch_at(from));
  __syncthreads();
  int position = from, buffer = 0;
  for (bool more = true; more; ++position, buffer ^= 1) {
    if (position > from && keeps_before(args, rows, first_row, len, position)) {
      column.store(args, slab, slot);
    }
    more = position + 1 <= begin || rows.continues(first_row + position + 1 - begin);
    RowPart next;
    if (more) next = fetch_at(position + 1);
    const SlabRow& row = shared.rows[buffer];
    float update = row.v[lane];
    if (shape.delta) {
      shared.known[part][lane] = column.known(row);
      __syncthreads();
      update -= sum_of_parts(shared.known, lane);
    }
    shared.answers[buffer][part][lane] = column.apply(row, update * row.scale);
    if (more) put(shared.rows[buffer ^ 1], next);
    const float v = row.v[lane];
    __syncthreads();
    if (position >= begin) {
      answer(args, slab, first_row + position - begin, sum_of_parts(shared.answers[buffer], lane),
             v);
    }
  }
  if (position < len && position > from) column.store(args, slab, slot);
  __syncthreads();
}

template <int Rows>
__global__ void __launch_bounds__(kThreads) linear_attention_kernel(LinearAttentionArgs args) {
  __shared__ Shared shared;
  wait_for_previous();
  let_next_start();
  const StateRows rows = rows_of(args);
  const int slabs = ceil_div(args.shape.value_dim, kSlab);
  const int head = blockIdx.x / slabs;
  const Slab slab{head, args.shape.key_head_of(head),
                  static_cast<int>(blockIdx.x % slabs * kSlab + threadIdx.x % kSlab)};
  for (int row = blockIdx.y; row < rows.count; row += gridDim.y) {
    if (!rows.continues(row)) run_slab<Rows>(args, rows, slab, row, shared);
  }
}

// What the next run goes on from, once no block reads what this one went on from.
__global__ void __launch_bounds__(kKeepThreads) keep_updates_kernel(LinearAttentionArgs args) {
  wait_for_previous();
  let_next_start();
  const StateRows rows = rows_of(args);
  const int row = blockIdx.x;
  if (row >= rows.count) return;
  const int slot = args.row_slot[row], position = args.positions[row];
  const int len = known_len(args.slots, slot, position + 1, args.pending_rows);
  if (stays_pending(rows, row, len, args.pending_rows)) {
    const float* from = args.x + int64_t{row} * args.shape.row_size() + args.shape.k_offset();
    float* to = pending_row(args, slot, position);
    for (int i = blockIdx.y * kKeepThreads + threadIdx.x; i < args.shape.update_size();
         i += gridDim.y * kKeepThreads) {
      to[i] = from[i];
    }
  }
  if (blockIdx.y == 0 && threadIdx.x == 0 && !rows.continues(row + 1)) {
    args.committed[slot] = kept_behind(rows, row, args.committed[slot], len);
  }
}

template <int Rows>
void launch(const LinearAttentionArgs& args, cudaStream_t stream) {
  const int slabs = ceil_div(args.shape.value_dim, kSlab);
  const dim3 grid(args.shape.value_heads * slabs, std::min(args.max_rows, kMaxRunners));
  launch_kernel(linear_attention_kernel<Rows>, grid, kThreads, 0, stream, args);
  const int pieces = std::min(8, ceil_div(args.shape.update_size(), 4 * kKeepThreads));
  launch_kernel(keep_updates_kernel, dim3(args.max_rows, pieces), kKeepThreads, 0, stream, args);
}

}  // namespace

void launch_linear_attention(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<LinearAttentionArgs>(packed);
  if (args.shape.key_dim <= 16 * kParts) {
    launch<16>(args, stream);
  } else if (args.shape.key_dim <= 32 * kParts) {
    launch<32>(args, stream);
  } else {
    launch<64>(args, stream);
  }
}

}  // namespace foretoken::cuda
