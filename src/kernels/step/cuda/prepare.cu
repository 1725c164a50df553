#include "kernels/step/prepare.h"

#include "kernels/branches.h"
#include "kernels/cuda/block_scan.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/logits_row.h"
#include "kernels/plan_layout.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 1024;

// What a span asks for: token rows and the logits rows among them.
struct SpanNeeds {
  int rows = 0;
  int logits = 0;
  int drafts = 0;
  int scored = 0;
};

__device__ SpanNeeds span_needs(const BatchState& batch, const SpanPlan& span) {
  const SlotState& slot = batch.slots[span.slot];
  if (slot.finished != static_cast<int32_t>(DeviceFinish::kNone)) return {};
  const int known = max(min(span.num_tokens, slot.len - slot.computed), 0);
  if (known == 0) return {};
  const bool complete = slot.computed + known == slot.len;
  const bool pools = batch.params[span.slot].pooling != static_cast<int32_t>(DevicePooling::kNone);
  const bool samples = complete && !pools;
  const int drafts =
      samples ? max(min(min(slot.num_draft_tokens, span.max_verified), kMaxDraftTokens), 0) : 0;
  const int last = slot.computed + known + drafts - 1;
  if (last / batch.block_size >= batch.max_blocks) return {};
  const int scored = span.wants_all != 0 && !pools ? known - (complete ? 1 : 0) : 0;
  return {known + drafts, scored + (samples ? drafts + 1 : 0), drafts, scored};
}

__device__ void store_span(const PrepareArgs& args, int index, int slot, SpanNeeds needs,
                           int row_begin, int logits_begin) {
  SpanState& state = args.tensors.spans[index];
  state.slot = slot;
  state.row_begin = row_begin;
  state.num_rows = needs.rows;
  state.logits_begin = logits_begin;
  state.num_logits = needs.logits;
  state.num_draft_tokens = needs.drafts;
  state.num_scored = needs.scored;
}

// The slow way for a plan that does not fit: a span beyond the limits gets no rows.
__device__ int2 place_one_by_one(const PrepareArgs& args, const PlanView& plan, int num_spans) {
  const bool splits = args.lane_rows > 0;
  const int most = splits ? args.lane_rows : args.max_rows;
  int2 total{0, 0};
  int lane_begin = 0;
  for (int i = 0; i < num_spans; ++i) {
    if (splits && i == plan.header->lane_spans) lane_begin = total.x;
    SpanNeeds needs = span_needs(args.batch, plan.spans[i]);
    if (total.x - lane_begin + needs.rows > most || total.y + needs.logits > args.max_logits_rows) {
      needs = {};
    }
    store_span(args, i, plan.spans[i].slot, needs, total.x, total.y);
    total.x += needs.rows;
    total.y += needs.logits;
  }
  return total;
}

// How many of `total` rows are in the first lane.
__device__ int first_lane_rows(const PrepareArgs& args, const PlanView& plan, int num_spans,
                               int total) {
  const int spans = plan.header->lane_spans;
  if (args.lane_rows == 0 || spans >= num_spans) return total;
  return args.tensors.spans[spans].row_begin;
}

__device__ bool fits(const PrepareArgs& args, const PlanView& plan, int num_spans, int2 total) {
  if (total.y > args.max_logits_rows) return false;
  const int first = first_lane_rows(args, plan, num_spans, total.x);
  const int most = args.lane_rows > 0 ? args.lane_rows : args.max_rows;
  return first <= most && total.x - first <= most;
}

// Rows and logits rows in all; the rows of spans lie one behind the other, whatever their lane.
__device__ int2 place_spans(const PrepareArgs& args, const PlanView& plan, int num_spans) {
  __shared__ int scratch[kThreads];
  __shared__ int2 total;
  int2 base{0, 0};
  for (int begin = 0; begin < num_spans; begin += kThreads) {
    const int i = begin + threadIdx.x;
    const SpanNeeds needs = i < num_spans ? span_needs(args.batch, plan.spans[i]) : SpanNeeds{};
    const int rows = base.x + block_scan<kThreads>(needs.rows, scratch);
    const int logits = base.y + block_scan<kThreads>(needs.logits, scratch);
    if (i < num_spans) {
      store_span(args, i, plan.spans[i].slot, needs, rows - needs.rows, logits - needs.logits);
    }
    if (threadIdx.x == kThreads - 1) total = int2{rows, logits};
    __syncthreads();
    base = total;
  }
  if (!fits(args, plan, num_spans, base)) {
    __syncthreads();
    if (threadIdx.x == 0) total = place_one_by_one(args, plan, num_spans);
    __syncthreads();
    base = total;
  }
  return base;
}

// The spans that branches follow, by branch; -1: none that verifies drafts.
__device__ void find_leaders(const PrepareArgs& args, const PlanView& plan, int num_spans,
                             int* leaders) {
  const BatchState& batch = args.batch;
  if (threadIdx.x < kMaxBranches) leaders[threadIdx.x] = -1;
  __syncthreads();
  for (int i = threadIdx.x; i < num_spans; i += kThreads) {
    if (args.tensors.spans[i].num_draft_tokens == 0) continue;
    for (int b = 0; b < batch.num_branches; ++b) {
      const int slot = first_branch(batch) + b;
      if (follows(batch, slot) && text_slot(batch, slot) == plan.spans[i].slot) leaders[b] = i;
    }
  }
  __syncthreads();
}

// Rows of branches behind those of all spans, which take `total`. Returns what all take, and in `z`
// how many branches have some.
__device__ int3 place_branches(const PrepareArgs& args, const PlanView& plan, int num_spans,
                               int2 total) {
  const int most = min(plan.header->num_branches, args.batch.num_branches);
  if (most <= 0) return int3{total.x, total.y, 0};
  __shared__ int leaders[kMaxBranches];
  __shared__ int3 all;
  find_leaders(args, plan, num_spans, leaders);
  if (threadIdx.x == 0) {
    all = int3{total.x, total.y, 0};
    const int first = first_lane_rows(args, plan, num_spans, total.x);
    const int max_rows = args.lane_rows > 0 ? first + args.lane_rows : args.max_rows;
    for (int b = 0; b < args.batch.num_branches && all.z < most; ++b) {
      if (leaders[b] < 0) continue;
      SpanPlan span{};
      span.slot = first_branch(args.batch) + b;
      span.num_tokens = 1;
      span.max_verified = plan.spans[leaders[b]].max_verified;
      const SpanNeeds needs = span_needs(args.batch, span);
      if (needs.drafts == 0 || all.x + needs.rows > max_rows ||
          all.y + needs.logits > args.max_logits_rows) {
        continue;
      }
      store_span(args, num_spans + all.z, span.slot, needs, all.x, all.y);
      all = int3{all.x + needs.rows, all.y + needs.logits, all.z + 1};
    }
  }
  __syncthreads();
  return all;
}

// The last span that begins at or before `row` and has rows.
__device__ int span_of_row(const SpanState* spans, int num_spans, int row) {
  int low = 0;
  int high = num_spans - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (spans[middle].row_begin <= row) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  // Spans without rows share their begin with the span after them; the search ends at the last.
  while (spans[low].num_rows == 0) --low;
  return low;
}

// Place of a position's entry in the KV blocks of a table.
__device__ int kv_place(const BatchState& batch, const int32_t* tables, int slot, int position) {
  const int block = tables[int64_t{slot} * batch.max_blocks + position / batch.block_size];
  return block * batch.block_size + position % batch.block_size;
}

// `row`, as place_spans counts them, goes to place `to`.
__device__ void fill_row(const PrepareArgs& args, int row, int to, int num_spans) {
  const StepTensors& out = args.tensors;
  const SpanState span = out.spans[span_of_row(out.spans, num_spans, row)];
  const int offset = row - span.row_begin;
  const int position = args.batch.slots[span.slot].computed + offset;
  out.token_ids[to] = history_id(args.batch, span.slot, position);
  out.positions[to] = position;
  out.row_slot[to] = span.slot;
  out.kv_slot[to] = kv_place(args.batch, args.batch.block_tables, span.slot, position);
  if (args.batch.window_tables != nullptr) {
    out.window_slot[to] = kv_place(args.batch, args.batch.window_tables, span.slot, position);
  }
  const int logits = offset - (span.num_rows - span.num_logits);
  if (logits >= 0 && span.num_logits > 0) out.logits_rows[span.logits_begin + logits] = to;
}

__device__ void pad_row(const PrepareArgs& args, int to) {
  args.tensors.token_ids[to] = 0;
  args.tensors.positions[to] = 0;
  args.tensors.row_slot[to] = args.batch.num_slots;
  args.tensors.kv_slot[to] = 0;
  if (args.batch.window_tables != nullptr) args.tensors.window_slot[to] = 0;
}

__global__ void __launch_bounds__(kThreads) prepare_kernel(PrepareArgs args) {
  wait_for_previous();
  let_next_start();
  const PlanView plan = plan_view(args.plan, args.limits);
  const int num_spans = min(plan.header->num_spans, args.limits.max_spans);
  const int2 placed = place_spans(args, plan, num_spans);
  const int3 total = place_branches(args, plan, num_spans, placed);
  const int num_all = num_spans + total.z;
  const bool splits = args.lane_rows > 0;
  const int rows_each = splits ? args.lane_rows : args.max_rows;
  const int first = first_lane_rows(args, plan, num_spans, total.x);
  if (threadIdx.x == 0) {
    args.tensors.counts[0] = StepCounts{total.x, total.y, num_spans, total.z};
    if (splits) args.tensors.counts[1] = StepCounts{first, 0, 0, 0};
    if (splits) args.tensors.counts[2] = StepCounts{total.x - first, 0, 0, 0};
  }
  __syncthreads();
  for (int i = threadIdx.x; i < (splits ? 2 : 1) * rows_each; i += kThreads) {
    const bool second = i >= rows_each;
    const int row = second ? i - rows_each : i;
    const int to = second ? args.lane_offset + row : row;
    if (row < (second ? total.x - first : first)) {
      fill_row(args, second ? first + row : row, to, num_all);
    } else {
      pad_row(args, to);
    }
  }
  if (!splits) return;
  __syncthreads();
  for (int i = plan.header->lane_spans + threadIdx.x; i < num_all; i += kThreads) {
    args.tensors.spans[i].row_begin += args.lane_offset - first;
  }
}

}  // namespace

void launch_prepare(const void* args, cudaStream_t stream) {
  launch_kernel(prepare_kernel, 1, kThreads, 0, stream, op_args<PrepareArgs>(args));
}

}  // namespace foretoken::cuda
