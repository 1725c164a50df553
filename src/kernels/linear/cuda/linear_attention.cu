#include "kernels/linear/linear_attention.h"

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/mma.cuh"
#include "kernels/linear/cuda/state_part.cuh"
#include "kernels/linear/cuda/state_rows.cuh"

namespace foretoken::cuda {
namespace {

// Between these numbers of rows a launch is taken for many sequences with few rows each, which want
// wide loads; below and beyond them for few sequences, which want many warps.
constexpr int kFewRows = 8;
constexpr int kManyRows = 1024;
constexpr int kKeepThreads = 256;
constexpr int kKeepBlocks = 256;

// R: keys of a lane, C: columns of a thread.
template <int R, int C>
struct Division {
  static constexpr int kKeys = R * kKeyLanes;
  static constexpr int kWarps = kSlab / (kColumnLanes * C);
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kStageRows = 4;
  static constexpr int kStages = R > 16 ? 3 : 4;
  // Rows whose answers are summed together.
  static constexpr int kGroupRows = R > 16 || C == 4 ? 2 : 4;
  // Of a multiprocessor, with 12 warps or more: loads of some are under way while others count.
  static constexpr int kMinBlocks = R > 16 ? 1 : C == 4 ? 6 : 3;
};

__device__ float* pending_row(const LinearAttentionArgs& args, int slot, int position) {
  const int64_t row = int64_t{slot} * args.pending_rows + position % args.pending_rows;
  return args.pending + row * args.shape.update_size();
}

// Rows of one sequence, [begin, begin + count) by position from row `row` on.
struct Run {
  int row;
  int slot;
  int begin;
  int count;
};

// Rows of the run that begins with `run.row`, of `live` ones; `tail`: lanes whose row, counted from
// the one behind it, is in the run. All lanes of a warp call it.
__device__ int run_length(const LinearAttentionArgs& args, const Run& run, int live,
                          uint32_t tail) {
  if (tail != 0xffffffffu) return __ffs(~tail);
  const int lane = threadIdx.x % 32;
  int inside = 32, outside = live - run.row;
  while (outside - inside > 1) {
    const int stride = ceil_div(outside - inside, 33);
    const int probe = inside + (lane + 1) * stride;
    bool in = probe < outside;
    if (in) {
      in = args.row_slot[run.row + probe] == run.slot &&
           args.positions[run.row + probe] - run.begin == probe;
    }
    const int found = __popc(__ballot_sync(0xffffffffu, in));
    inside += found * stride;
    outside = min(outside, inside + stride);
  }
  return outside;
}

// The run that begins with `row`; without rows where none does. Reads nothing that hangs on the
// number of live rows before it has all, so that a launch waits once.
__device__ Run run_at(const LinearAttentionArgs& args, int row) {
  const int lane = threadIdx.x % 32;
  const int other = min(row + 1 + lane, args.max_rows - 1), before = max(row - 1, 0);
  Run run{row, args.row_slot[row], args.positions[row], 0};
  const int other_slot = args.row_slot[other], other_position = args.positions[other];
  const int slot_before = args.row_slot[before], position_before = args.positions[before];
  const int live = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
  const bool begins = row == 0 || slot_before != run.slot || position_before != run.begin - 1;
  if (row >= live || !begins) return run;
  const bool in =
      row + 1 + lane < live && other_slot == run.slot && other_position - run.begin == 1 + lane;
  run.count = run_length(args, run, live, __ballot_sync(0xffffffffu, in));
  return run;
}

// `count` floats by one warp, in pieces of 16 bytes where `wide`.
__device__ inline void copy_floats(float* to, const float* from, int count, bool wide) {
  const int lane = threadIdx.x % 32;
  if (wide) {
    for (int i = lane * 4; i < count; i += 32 * 4) copy16_async(to + i, from + i, true);
  } else {
    for (int i = lane; i < count; i += 32) copy4_async(to + i, from + i);
  }
}

// A warp brings a row. `packed`: from its keys on; `q`: of the place's key head, or null.
template <int kKeys, bool kChannels>
__device__ void fetch_row(const LinearAttentionArgs& args, const SlabPlace& place,
                          const float* packed, const float* q, bool wide,
                          SlabRow<kKeys, kChannels>& row) {
  const LinearShape& shape = args.shape;
  const int lane = threadIdx.x % 32;
  const float* decays = packed + (shape.decay_offset() - shape.k_offset());
  copy_floats(row.k, packed + place.key_head * shape.key_dim, shape.key_dim, wide);
  if (q != nullptr) copy_floats(row.q, q, shape.key_dim, wide);
  if (kChannels) {
    copy_floats(row.decay, decays + place.head * shape.key_dim, shape.key_dim, wide);
  } else if (lane == 31) {
    copy4_async(row.decay, decays + place.head);
  }
  copy_floats(
      row.v,
      packed + (shape.v_offset() - shape.k_offset()) + place.head * shape.value_dim + place.slab,
      min(kSlab, shape.value_dim - place.slab), wide);
  if (shape.scaled && lane == 30) {
    copy4_async(row.scale, packed + (shape.scale_offset() - shape.k_offset()) + place.head);
  }
}

// Takes a slab through one run.
template <int R, int C, StateForm kForm>
struct Walk {
  using Sizes = Division<R, C>;
  using Row = SlabRow<Sizes::kKeys, kForm == StateForm::kChannels>;
  static constexpr int kRingRows = Sizes::kStages * Sizes::kStageRows;
  static constexpr int kGroup = Sizes::kGroupRows;

  const LinearAttentionArgs& args;
  const SlabPlace& place;
  const Run& run;
  Row* ring;
  bool wide;
  float skip;
  StateRun state;
  StatePart<R, C, kForm> part;

  __device__ bool keeps_at(int position) const {
    return position == state.keep && state.keep > state.from;
  }
  __device__ void fetch_stage(int stage) {
#pragma unroll
    for (int i = 0; i < Sizes::kStageRows; i += Sizes::kWarps) {
      const int at = stage * Sizes::kStageRows + i + static_cast<int>(threadIdx.x / 32);
      const int position = state.from + at;
      const bool is_mine = i + static_cast<int>(threadIdx.x / 32) < Sizes::kStageRows;
      if (!is_mine || position >= state.end) continue;
      Row& to = ring[at % kRingRows];
      if (position < run.begin) {
        fetch_row(args, place, pending_row(args, run.slot, position), nullptr, wide, to);
      } else {
        const float* x = args.x + int64_t{run.row + position - run.begin} * args.shape.row_size();
        fetch_row(args, place, x + args.shape.k_offset(), x + place.key_head * args.shape.key_dim,
                  wide, to);
      }
    }
    commit_copies();
  }
  // The lane's answer among those of the rows from `first` on.
  __device__ void answer(int first, const Row* rows, float (&parts)[kKeyLanes]) {
    float value = sum_keys_of_each(parts);
    const int index = place.key_lane / C, c = place.key_lane % C;
    const int position = first + index;
    if (index >= kGroup || position < run.begin || position >= state.end) return;
    if (place.column + c >= args.shape.value_dim) return;
    if (args.skip != nullptr) {
      value = fmaf(skip, rows[index].v[place.lane_column + c], value);
    }
    args.out[int64_t{run.row + position - run.begin} * args.shape.v_size() +
             place.head * args.shape.value_dim + place.column + c] = value;
  }
  // Rows of which some are pending ones or lie behind the run's end, or S among them is kept.
  __device__ void take_some(int first, const Row* rows, float (&parts)[kKeyLanes]) {
#pragma unroll 1
    for (int j = 0; j < kGroup && first + j < state.end; ++j) {
      if (keeps_at(first + j)) part.store(args, place, run.slot);
      float out[C] = {};
      part.take(rows[j], place, args.shape.delta, first + j >= run.begin, out);
#pragma unroll
      for (int i = 0; i < kGroup * C; ++i) parts[i] = i / C == j ? out[i % C] : parts[i];
    }
  }
  __device__ void take_group(int first, const Row* rows) {
    float parts[kKeyLanes] = {};
    // Rows side by side overlap, which prompts gain from.
    const bool is_plain = C < 4 && first >= run.begin && first + kGroup <= state.end &&
                          (state.keep < first || state.keep >= first + kGroup);
    if (is_plain) {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        part.take(rows[j], place, args.shape.delta, true, parts + j * C);
      }
    } else {
      take_some(first, rows, parts);
    }
    if (first + kGroup > run.begin) answer(first, rows, parts);
  }
  __device__ void go() {
    part.load(args, place, run.slot);
    const int len = known_len(args.slots, run.slot, run.begin + run.count, args.pending_rows);
    state = state_run(run.begin, run.count, args.committed[run.slot], len, args.pending_rows);
    const int stages = ceil_div(state.end - state.from, Sizes::kStageRows);
#pragma unroll
    for (int i = 0; i < Sizes::kStages - 1; ++i) fetch_stage(i);
    if (state.from == 0) part.clear();
    for (int stage = 0; stage < stages; ++stage) {
      wait_copies<Sizes::kStages - 2>();
      __syncthreads();
      fetch_stage(stage + Sizes::kStages - 1);
      const Row* rows = ring + stage % Sizes::kStages * Sizes::kStageRows;
#pragma unroll 1
      for (int j = 0; j < Sizes::kStageRows; j += kGroup) {
        const int first = state.from + stage * Sizes::kStageRows + j;
        if (first < state.end) take_group(first, rows + j);
      }
    }
    if (keeps_at(state.end)) part.store(args, place, run.slot);
    __syncthreads();
  }
};

// What fetch_row leaves alone.
template <class Row>
__device__ void clear_ring(Row* ring, int rows, const LinearShape& shape) {
  const bool is_full = shape.key_dim * sizeof(float) == sizeof ring->k &&
                       shape.value_dim % kSlab == 0 && shape.scaled;
  if (is_full) return;
  float* all = reinterpret_cast<float*>(ring);
  for (int i = threadIdx.x; i < rows * static_cast<int>(sizeof(Row) / sizeof(float));
       i += blockDim.x) {
    all[i] = 0;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < rows; i += blockDim.x) ring[i].scale[0] = 1.0f;
  __syncthreads();
}

template <int R, int C, StateForm kForm>
__global__ void __launch_bounds__(Division<R, C>::kThreads, Division<R, C>::kMinBlocks)
    linear_attention_kernel(LinearAttentionArgs args, bool wide) {
  using Way = Walk<R, C, kForm>;
  __shared__ typename Way::Row ring[Way::kRingRows];
  const SlabPlace place = place_of<C>(args.shape);
  clear_ring(ring, Way::kRingRows, args.shape);
  const float skip = args.skip != nullptr ? args.skip[place.head] : 0.0f;
  wait_for_previous();
  for (int row = blockIdx.y; row < args.max_rows; row += gridDim.y) {
    const Run run = run_at(args, row);
    if (run.count == 0) continue;
    Way walk{args, place, run, ring, wide, skip};
    walk.go();
  }
}

// What the next run goes on from, once no block reads what this one went on from. A warp looks at
// `rows_each` rows, one a lane, and its block copies those that stay.
__global__ void __launch_bounds__(kKeepThreads)
    keep_updates_kernel(LinearAttentionArgs args, int rows_each, bool wide) {
  wait_for_previous();
  const StateRows rows = rows_of(args);
  const int first = blockIdx.x * rows_each, lane = threadIdx.x % 32;
  if (first >= rows.count) return;
  const int mine = first + lane;
  bool stays = false;
  if (lane < rows_each && mine < rows.count) {
    const int slot = args.row_slot[mine];
    const int len = known_len(args.slots, slot, args.positions[mine] + 1, args.pending_rows);
    stays = stays_pending(rows, mine, len, args.pending_rows);
    if (blockIdx.y == 0 && threadIdx.x < 32 && !rows.continues(mine + 1)) {
      args.committed[slot] = kept_behind(rows, mine, args.committed[slot], len);
    }
  }
  const int size = args.shape.update_size();
  const int thread = blockIdx.y * kKeepThreads + threadIdx.x, threads = gridDim.y * kKeepThreads;
  for (uint32_t left = __ballot_sync(0xffffffffu, stays); left != 0; left &= left - 1) {
    const int row = first + __ffs(left) - 1;
    const float* from = args.x + int64_t{row} * args.shape.row_size() + args.shape.k_offset();
    float* to = pending_row(args, args.row_slot[row], args.positions[row]);
    if (wide) {
      for (int i = thread; i < size / 4; i += threads) {
        reinterpret_cast<float4*>(to)[i] = reinterpret_cast<const float4*>(from)[i];
      }
    } else {
      for (int i = thread; i < size; i += threads) to[i] = from[i];
    }
  }
}

bool is_aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

// Whether every part of a packed row, and of a pending one, that is copied lies on 16 bytes.
bool rows_are_wide(const LinearAttentionArgs& args) {
  const LinearShape& shape = args.shape;
  return shape.key_dim % 4 == 0 && shape.value_dim % 4 == 0 && shape.row_size() % 4 == 0 &&
         is_aligned(args.x) && is_aligned(args.pending);
}

template <int R, int C>
void launch_walks(const LinearAttentionArgs& args, bool wide, cudaStream_t stream) {
  const LinearShape& shape = args.shape;
  const int slabs = ceil_div(shape.value_dim, kSlab);
  const dim3 grid(shape.value_heads * slabs, std::min(args.max_rows, kMaxRunners));
  const auto kernel = shape.channel_decay ? linear_attention_kernel<R, C, StateForm::kChannels>
                      : shape.delta       ? linear_attention_kernel<R, C, StateForm::kDelta>
                                          : linear_attention_kernel<R, C, StateForm::kPlain>;
  prefer_shared_memory(kernel);
  launch_kernel(kernel, grid, Division<R, C>::kThreads, 0, stream, args, wide);
}

void launch_keep(const LinearAttentionArgs& args, bool wide, cudaStream_t stream) {
  const int rows_each = std::min(32, ceil_div(args.max_rows, kKeepBlocks));
  const int pieces = std::min(8, ceil_div(args.shape.update_size(), 4 * kKeepThreads));
  const dim3 grid(ceil_div(args.max_rows, rows_each), pieces);
  launch_kernel(keep_updates_kernel, grid, kKeepThreads, 0, stream, args, rows_each, wide);
}

}  // namespace

void launch_linear_attention(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<LinearAttentionArgs>(packed);
  const bool wide = rows_are_wide(args);
  const int key_dim = args.shape.key_dim, value_dim = args.shape.value_dim;
  const bool is_decoding = args.max_rows > kFewRows && args.max_rows <= kManyRows;
  const bool fours = is_decoding && value_dim % 4 == 0 && is_aligned(args.states);
  if (value_dim % 2 != 0) {
    launch_walks<32, 1>(args, wide, stream);
  } else if (key_dim > 16 * kKeyLanes) {
    launch_walks<32, 2>(args, wide, stream);
  } else if (key_dim > 8 * kKeyLanes) {
    fours ? launch_walks<16, 4>(args, wide, stream) : launch_walks<16, 2>(args, wide, stream);
  } else {
    fours ? launch_walks<8, 4>(args, wide, stream) : launch_walks<8, 2>(args, wide, stream);
  }
  launch_keep(args, wide, stream);
}

}  // namespace foretoken::cuda
