#include "kernels/linear/selective_scan.h"

#include <algorithm>

#include "kernels/attention/gate_heads.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/linear/cuda/state_rows.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 128;

__device__ float* pending_row(const SelectiveScanArgs& args, int slot, int position) {
  const int64_t row = int64_t{slot} * args.pending_rows + position % args.pending_rows;
  return args.pending + row * args.update_size();
}

// What a row does to a channel.
struct ScanRow {
  const float* keys;
  const float* queries;
  float x;
  float step;
};

// A thread's channel: its part of the state, in registers.
template <int States>
struct ScanChannel {
  float h[States];
  float rates[States];
  int channel;

  __device__ float* place(const SelectiveScanArgs& args, int slot, int n) const {
    return args.states + slot * args.state_size() + int64_t{n} * args.channels + channel;
  }
  __device__ void load(const SelectiveScanArgs& args, int slot, bool is_zero) {
#pragma unroll
    for (int n = 0; n < States; ++n) {
      h[n] = !is_zero && n < args.d_state ? *place(args, slot, n) : 0.0f;
    }
  }
  __device__ void store(const SelectiveScanArgs& args, int slot) const {
#pragma unroll
    for (int n = 0; n < States; ++n) {
      if (n < args.d_state) *place(args, slot, n) = h[n];
    }
  }
  __device__ float apply(const SelectiveScanArgs& args, const ScanRow& row) {
    const float taken = row.step * row.x;
    float sum = 0;
#pragma unroll
    for (int n = 0; n < States; ++n) {
      if (n >= args.d_state) break;
      const float decay = sample_math::exp_nonpositive(activation_math::mul(-rates[n], row.step));
      h[n] = fmaf(taken, row.keys[n], h[n] * decay);
      sum = fmaf(h[n], row.queries[n], sum);
    }
    return sum;
  }
};

// Whether the state behind `position` is the one to be kept: the last that no row changes which may
// come again. Without lengths it is the one behind which the run has `pending_rows` more.
__device__ bool keeps_before(const SelectiveScanArgs& args, const StateRows& rows, int first_row,
                             int len, int position) {
  if (args.slots != nullptr) return position == len - 1;
  const int last = first_row + position + args.pending_rows - 1 - args.positions[first_row];
  return last >= first_row && rows.same_run(first_row, last) && !rows.same_run(first_row, last + 1);
}

// The run that begins with `first_row`.
template <int States>
__device__ void scan_run(const SelectiveScanArgs& args, const StateRows& rows,
                         ScanChannel<States>& channel, int first_row) {
  const int slot = args.row_slot[first_row], begin = args.positions[first_row];
  const int len = args.slots != nullptr ? args.slots[slot].len : 0;
  const int from = state_run(begin, 1, args.committed[slot], len, args.pending_rows).from;
  channel.load(args, slot, from == 0);
  int position = from;
  for (bool more = true; more; ++position) {
    if (position > from && keeps_before(args, rows, first_row, len, position)) {
      channel.store(args, slot);
    }
    more = position + 1 <= begin || rows.continues(first_row + position + 1 - begin);
    if (position < begin) {
      const float* update = pending_row(args, slot, position);
      const float* x = update + args.d_state + channel.channel;
      channel.apply(args, {update, update, *x, x[args.channels]});
      continue;
    }
    const int row = first_row + position - begin;
    const int64_t at = int64_t{row} * args.channels + channel.channel;
    const int64_t maps = int64_t{row} * args.maps_stride;
    const float x = args.x[at];
    const float sum = channel.apply(
        args, {args.keys + maps, args.queries + maps, x, gate_softplus(args.steps[at])});
    args.out[at] = fmaf(args.skip[channel.channel], x, sum);
  }
  if (position < len && position > from) channel.store(args, slot);
}

template <int States>
__global__ void __launch_bounds__(kThreads) selective_scan_kernel(SelectiveScanArgs args) {
  wait_for_previous();
  let_next_start();
  const StateRows rows = rows_of(args);
  ScanChannel<States> channel;
  channel.channel = blockIdx.x * kThreads + threadIdx.x;
  if (channel.channel >= args.channels) return;
#pragma unroll
  for (int n = 0; n < States; ++n) {
    channel.rates[n] =
        n < args.d_state ? args.rates[int64_t{n} * args.channels + channel.channel] : 0.0f;
  }
  for (int row = blockIdx.y; row < rows.count; row += gridDim.y) {
    if (!rows.continues(row)) scan_run<States>(args, rows, channel, row);
  }
}

// What the next run goes on from, once no block reads what this one went on from.
__global__ void __launch_bounds__(kThreads) keep_scans_kernel(SelectiveScanArgs args) {
  wait_for_previous();
  let_next_start();
  const StateRows rows = rows_of(args);
  const int row = blockIdx.x;
  if (row >= rows.count) return;
  const int slot = args.row_slot[row], position = args.positions[row];
  const int len = known_len(args.slots, slot, position + 1, args.pending_rows);
  const int first = blockIdx.y * kThreads + threadIdx.x;
  if (stays_pending(rows, row, len, args.pending_rows)) {
    float* to = pending_row(args, slot, position);
    const int64_t at = int64_t{row} * args.channels;
    for (int c = first; c < args.channels; c += gridDim.y * kThreads) {
      to[args.d_state + c] = args.x[at + c];
      to[args.d_state + args.channels + c] = gate_softplus(args.steps[at + c]);
    }
    if (first < args.d_state) to[first] = args.keys[int64_t{row} * args.maps_stride + first];
  }
  if (first == 0 && !rows.continues(row + 1)) {
    args.committed[slot] = kept_behind(rows, row, args.committed[slot], len);
  }
}

template <int States>
void launch(const SelectiveScanArgs& args, cudaStream_t stream) {
  const int blocks = ceil_div(args.channels, kThreads);
  const dim3 grid(blocks, std::min(args.max_rows, kMaxRunners));
  launch_kernel(selective_scan_kernel<States>, grid, kThreads, 0, stream, args);
  launch_kernel(keep_scans_kernel, dim3(args.max_rows, std::min(8, blocks)), kThreads, 0, stream,
                args);
}

}  // namespace

void launch_selective_scan(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<SelectiveScanArgs>(packed);
  args.d_state <= 16 ? launch<16>(args, stream) : launch<kMaxScanState>(args, stream);
}

}  // namespace foretoken::cuda
