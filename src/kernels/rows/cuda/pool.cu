#include "kernels/rows/pool.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/plan_layout.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 128;

// One thread: one column of one span. The additions follow the positions.
template <class T>
__global__ void __launch_bounds__(kThreads) pool_kernel(PoolArgs args) {
  wait_for_previous();
  let_next_start();
  const int index = blockIdx.y;
  const int column = blockIdx.x * kThreads + threadIdx.x;
  if (index >= args.tensors.counts->num_spans || column >= args.hidden) return;
  const SpanState span = args.tensors.spans[index];
  const auto pooling = static_cast<DevicePooling>(args.batch.params[span.slot].pooling);
  if (pooling == DevicePooling::kNone || span.num_rows == 0) return;
  const SlotState& slot = args.batch.slots[span.slot];
  const int first = slot.computed;
  const int len = slot.len;
  const bool complete = first + span.num_rows == len;
  const T* states =
      static_cast<const T*>(args.states) + int64_t{span.row_begin} * args.hidden + column;
  const auto state = [&](int row) { return to_float(states[int64_t{row} * args.hidden]); };
  if (complete && args.limits.max_states > 0) {
    const ResultView view = result_view(args.result, args.limits);
    const RowsOfStates rows = state_rows(span, pooling, args.limits);
    if (column == 0) view.state_rows[index] = rows;
    float* to = view.states + int64_t{rows.begin} * args.hidden + column;
    for (int row = 0; row < rows.count; ++row) to[int64_t{row} * args.hidden] = state(row);
  }
  if (pooling == DevicePooling::kTokens) return;
  float* accumulator = args.accumulators + int64_t{span.slot} * args.hidden + column;
  const bool is_max = pooling == DevicePooling::kMax;
  float sum = first > 0 ? *accumulator : is_max ? -INFINITY : 0.0f;
  if (pooling == DevicePooling::kMean || pooling == DevicePooling::kMeanSqrtLen) {
#pragma unroll 16
    for (int row = 0; row < span.num_rows; ++row) sum = __fadd_rn(sum, state(row));
  } else if (is_max) {
    for (int row = 0; row < span.num_rows; ++row) sum = fmaxf(sum, state(row));
  } else if (pooling == DevicePooling::kWeightedMean) {
    for (int row = 0; row < span.num_rows; ++row) {
      sum = __fadd_rn(sum, __fmul_rn(static_cast<float>(first + row + 1), state(row)));
    }
  } else if (pooling == DevicePooling::kFirst && first == 0) {
    sum = state(0);
  } else if (pooling == DevicePooling::kLast && complete) {
    sum = state(span.num_rows - 1);
  }
  *accumulator = sum;
  if (!complete) return;
  const float divisor = pool_divisor(pooling, len);
  result_view(args.result, args.limits).pooled[int64_t{index} * args.hidden + column] =
      __fdiv_rn(sum, divisor);
}

}  // namespace

void launch_pool(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<PoolArgs>(packed);
  const dim3 grid(ceil_div(args.hidden, kThreads), args.limits.max_spans);
  if (args.dtype == DType::kF32) {
    launch_kernel(pool_kernel<float>, grid, kThreads, 0, stream, args);
  } else {
    launch_kernel(pool_kernel<__nv_bfloat16>, grid, kThreads, 0, stream, args);
  }
}

}  // namespace foretoken::cuda
