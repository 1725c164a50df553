#include "kernels/linear/causal_conv.h"

#include <algorithm>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/linear/cpu/silu.h"
#include "kernels/linear/state_run.h"

namespace foretoken::cpu {
namespace {

// Channels of a task, which takes all rows one after the other.
constexpr int kConvChannels = 128;

// What a task keeps of its channels.
struct ConvTask {
  int first;
  int count;
  alignas(64) float weights[kMaxConvWidth][kConvChannels];
  alignas(64) float bias[kConvChannels];
  alignas(64) float inputs[kMaxConvWidth][kConvChannels];  // of position p in row p % width
  alignas(64) float sums[kConvChannels];
};

void load_weights(const CausalConvArgs& a, ConvTask& task) {
  for (int c = 0; c < task.count; ++c) {
    const float* weights = a.weights + int64_t{task.first + c} * a.width;
    for (int j = 0; j < a.width; ++j) task.weights[j][c] = weights[j];
    task.bias[c] = a.bias != nullptr ? a.bias[task.first + c] : 0.0f;
  }
}

float* history_row(const CausalConvArgs& a, const ConvTask& task, int slot, int position) {
  return a.history + (int64_t{slot} * a.history_rows + position % a.history_rows) * a.channels +
         task.first;
}

// The inputs of the positions before a run that begins at `position`.
void load_history(const CausalConvArgs& a, ConvTask& task, int slot, int position) {
  for (int back = 1; back < a.width; ++back) {
    float* to = task.inputs[(position - back + a.width) % a.width];
    if (position < back) {
      std::fill_n(to, task.count, 0.0f);
    } else {
      std::copy_n(history_row(a, task, slot, position - back), task.count, to);
    }
  }
}

FT_INLINE void add_weighted(float* sums, const float* weights, const float* inputs, int count) {
  for (int c = 0; c < count; ++c) sums[c] += weights[c] * inputs[c];
}

// The row's input, which takes the place of the oldest one, and what it leaves in `sums`.
FT_HOT void convolve(const CausalConvArgs& a, ConvTask& task, int row, int position) {
  const int64_t at = int64_t{row} * a.stride + task.first;
  float* input = task.inputs[position % a.width];
  std::memcpy(input, a.x + at, static_cast<size_t>(task.count) * sizeof(float));
  if (a.x_gate != nullptr) {
    for (int c = 0; c < task.count; ++c) input[c] *= a.x_gate[at + c];
  }
  std::memcpy(task.sums, task.bias, sizeof task.sums);
  for (int j = 0; j < a.width; ++j) {
    // Position p - width + 1 + j lies where p + 1 + j would.
    add_weighted(task.sums, task.weights[j], task.inputs[(position + 1 + j) % a.width], task.count);
  }
  if (a.silu != 0) pass_silu(task.sums, task.sums, task.count);
  if (a.out_gate != nullptr) {
    for (int c = 0; c < task.count; ++c) task.sums[c] *= a.out_gate[at + c];
  }
}

template <class Out>
FT_INLINE void store_sums(const ConvTask& task, Out* out) {
  int c = 0;
  for (; c + kOctet <= task.count; c += kOctet) {
    Octet value;
    load(value, task.sums + c);
    store(out + c, value);
  }
  for (; c < task.count; ++c) store_one(out + c, task.sums[c]);
}

FT_HOT void store_out(const CausalConvArgs& a, const ConvTask& task, int row) {
  const int64_t at = int64_t{row} * a.channels + task.first;
  a.out_dtype == DType::kF32 ? store_sums(task, static_cast<float*>(a.out) + at)
                             : store_sums(task, static_cast<uint16_t*>(a.out) + at);
}

void convolve_run(const CausalConvArgs& a, ConvTask& task, int begin, int end) {
  const int slot = a.row_slot[begin];
  load_history(a, task, slot, a.positions[begin]);
  for (int row = begin; row < end; ++row) {
    const int position = a.positions[row];
    convolve(a, task, row, position);
    store_out(a, task, row);
    if (row + a.history_rows >= end) {
      std::copy_n(task.inputs[position % a.width], task.count,
                  history_row(a, task, slot, position));
    }
  }
}

}  // namespace

void causal_conv(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const CausalConvArgs*>(args);
  const StateRows rows{a.positions, a.row_slot,
                       live_rows(*a.counts, RowKind::kToken, 0, a.max_rows)};
  if (rows.count == 0) return;
  pool.parallel_for((a.channels + kConvChannels - 1) / kConvChannels, [&](int64_t index, int) {
    ConvTask task;
    task.first = static_cast<int>(index) * kConvChannels;
    task.count = std::min(kConvChannels, a.channels - task.first);
    load_weights(a, task);
    for (int begin = 0; begin < rows.count;) {
      const int end = rows.run_end(begin);
      convolve_run(a, task, begin, end);
      begin = end;
    }
  });
}

}  // namespace foretoken::cpu
