#include "kernels/draft_rows.h"

#include "kernels/cuda/draft_common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/plan_layout.h"

namespace foretoken::cuda {
namespace {

// The spans that the block's threads have at once.
struct SpanChunk {
  int slot[kDraftThreads];
  int first[kDraftThreads];      // entry of the span's first row
  int row_begin[kDraftThreads];  // ascending
  int num_spans;
};

// What one span has to catch up.
struct CatchUp {
  int slot = -1;  // the span is passed over
  int first = 0;  // entries before it are exact
  int end = 0;
  int max_rows = 0;
  bool may_draft = false;
};

__device__ CatchUp catch_up_of(const DraftRowsArgs& args, const SpanPlan& plan,
                               const SpanState& span) {
  CatchUp catch_up;
  if (span.num_rows == 0 || args.batch.params[plan.slot].drafter != args.drafter) return catch_up;
  const SlotState& state = args.batch.slots[plan.slot];
  catch_up.slot = plan.slot;
  catch_up.first = state.draft.computed;
  catch_up.end = min(known_after(span, state), args.max_len);
  catch_up.max_rows = plan.draft_rows;
  catch_up.may_draft = state.draft.wanted > 0 && has_sampled(span) &&
                       state.finished == static_cast<int32_t>(DeviceFinish::kNone);
  return catch_up;
}

// exact_entries by a warp, 32 blocks at a time.
__device__ int find_exact(const BatchState& batch, int slot, int drafter, int from, int end) {
  const int size = batch.block_size;
  const int32_t* table = batch.block_tables + int64_t{slot} * batch.max_blocks;
  for (int index = from / size;; index += 32) {
    const int mine = index + static_cast<int>(threadIdx.x % 32);
    const int count =
        int64_t{mine} * size < end ? batch.page_headers[table[mine]].draft_counts[drafter] : 0;
    const uint32_t incomplete = __ballot_sync(0xffffffffu, count < size);
    if (incomplete == 0) continue;
    const int lane = __ffs(static_cast<int>(incomplete)) - 1;
    const int exact = (index + lane) * size + __shfl_sync(0xffffffffu, count, lane);
    return min(max(exact, from), end);
  }
}

// Where nothing is known of a slot, the page headers tell. Called by whole warps.
__device__ void find_first(const DraftRowsArgs& args, CatchUp& mine) {
  uint32_t unknown = __ballot_sync(0xffffffffu, mine.slot >= 0 && mine.first == 0);
  for (; unknown != 0; unknown &= unknown - 1) {
    const int lane = __ffs(static_cast<int>(unknown)) - 1;
    const int slot = __shfl_sync(0xffffffffu, mine.slot, lane);
    const int end = __shfl_sync(0xffffffffu, mine.end, lane);
    const int first = find_exact(args.batch, slot, args.drafter, min(args.first_entry, end), end);
    if (static_cast<int>(threadIdx.x % 32) == lane) mine.first = first;
  }
}

// The span gets `count` rows; whether its last one wants logits.
__device__ bool settle(const DraftRowsArgs& args, const CatchUp& span, int count) {
  if (span.slot < 0) return false;
  SlotState& state = args.batch.slots[span.slot];
  state.draft.computed = span.first + count;
  state.num_drafts = 0;
  const bool drafts = span.may_draft && count > 0 && state.draft.computed == state.len;
  if (!drafts) state.draft.wanted = 0;
  return drafts;
}

// Two sequences that share a block may have it caught up in the same step.
__device__ void raise_count(int16_t& count, int to) {
  auto* word = reinterpret_cast<unsigned short*>(&count);
  unsigned short seen = *word;
  while (static_cast<int16_t>(seen) < to) {
    const unsigned short before = atomicCAS(word, seen, static_cast<unsigned short>(to));
    if (before == seen) return;
    seen = before;
  }
}

// The last span that begins at or before `row`.
__device__ int span_of_row(const SpanChunk& chunk, int row) {
  int low = 0;
  int high = chunk.num_spans - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (chunk.row_begin[middle] <= row) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

__device__ void fill_row(const DraftRowsArgs& args, const SpanChunk& chunk, int row, int end) {
  const BatchState& batch = args.batch;
  const int i = span_of_row(chunk, row);
  const int slot = chunk.slot[i];
  const int position = chunk.first[i] + row - chunk.row_begin[i];
  const int place = place_draft_row(args.out, batch, row, slot, position);
  const int id = batch.token_pages[place];
  args.out.rows.token_ids[row] = args.token_map == nullptr ? id : args.token_map[id];
  args.out.source[row] = position > 0 ? kv_slot_at(batch, slot, position - 1) : 0;
  const int offset = position % batch.block_size;
  const bool ends_span = row + 1 == (i + 1 < chunk.num_spans ? chunk.row_begin[i + 1] : end);
  if (ends_span || offset + 1 == batch.block_size) {
    raise_count(batch.page_headers[place / batch.block_size].draft_counts[args.drafter],
                offset + 1);
  }
}

// One block; a thread has a span, and then rows.
__global__ void __launch_bounds__(kDraftThreads) draft_rows_kernel(DraftRowsArgs args) {
  __shared__ int scratch[kDraftThreads];
  __shared__ SpanChunk chunk;
  wait_for_previous();
  let_next_start();
  const PlanView plan = plan_view(const_cast<void*>(args.plan), args.limits);
  const int num_spans = min(plan.header->num_spans, args.limits.max_spans);
  int rows = 0;
  int logits = 0;
  for (int begin = 0; begin < num_spans; begin += kDraftThreads) {
    const int i = begin + threadIdx.x;
    CatchUp span = i < num_spans ? catch_up_of(args, plan.spans[i], args.spans[i]) : CatchUp{};
    find_first(args, span);
    const int missing = max(min(span.end - span.first, span.max_rows), 0);
    const int room = args.max_rows - rows;
    const int sum = block_scan<kDraftThreads>(missing, scratch);
    const int end = rows + min(scratch[kDraftThreads - 1], room);
    const int row_begin = rows + min(sum - missing, room);
    const int count = rows + min(sum, room) - row_begin;
    chunk.slot[threadIdx.x] = span.slot;
    chunk.first[threadIdx.x] = span.first;
    chunk.row_begin[threadIdx.x] = row_begin;
    if (threadIdx.x == 0) chunk.num_spans = min(kDraftThreads, num_spans - begin);
    const bool drafts = settle(args, span, count);
    const int order = block_scan<kDraftThreads>(drafts ? 1 : 0, scratch);
    if (drafts) args.out.rows.logits_rows[logits + order - 1] = row_begin + count - 1;
    logits += scratch[kDraftThreads - 1];
    for (int row = rows + threadIdx.x; row < end; row += kDraftThreads) {
      fill_row(args, chunk, row, end);
    }
    rows = end;
  }
  end_draft_rows(args.out, args.batch, rows, logits, args.max_rows);
}

}  // namespace

void launch_draft_rows(const void* args, cudaStream_t stream) {
  launch_kernel(draft_rows_kernel, 1, kDraftThreads, 0, stream, op_args<DraftRowsArgs>(args));
}

}  // namespace foretoken::cuda
