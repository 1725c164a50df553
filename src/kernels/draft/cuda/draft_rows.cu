#include "kernels/draft/draft_rows.h"

#include "kernels/cuda/launchers.h"
#include "kernels/draft/cuda/draft_common.cuh"
#include "kernels/draft_lists.h"
#include "kernels/plan_layout.h"

namespace foretoken::cuda {
namespace {

constexpr int kMaxClaims = 4096;  // a power of two

// What one span has to catch up.
struct CatchUp {
  int slot = -1;  // -1: the span is passed over
  int first = 0;  // entries before it are exact
  int findable = 0;
  int end = 0;
  int max_rows = 0;

  __device__ int missing() const { return max(min(end - first, max_rows), 0); }
};

// The spans that the block's threads have at once.
struct SpanChunk {
  CatchUp spans[kDraftThreads];
  int row_begin[kDraftThreads];  // ascending
  int num_spans;
  int claims[kMaxClaims];  // blocks that spans look at or add entries to; -1: free
};

// Whether the slot is to draft as soon as it has every entry.
__device__ bool wants_drafts(const SpanState& span, const SlotState& state) {
  return has_sampled(span) && state.draft.num_draft_tokens > 0 &&
         state.finished == static_cast<int32_t>(DeviceFinish::kNone);
}

__device__ CatchUp catch_up_of(const DraftRowsArgs& args, const SpanPlan& plan,
                               const SpanState& span) {
  CatchUp catch_up;
  if (span.num_rows == 0 || args.batch.params[plan.slot].drafter != args.drafter) return catch_up;
  const SlotState& state = args.batch.slots[plan.slot];
  catch_up.slot = plan.slot;
  if (args.last_only != 0) {
    const bool drafts = wants_drafts(span, state) && state.len <= args.max_len;
    catch_up.first = catch_up.findable = state.len - 1;
    catch_up.end = drafts ? state.len : state.len - 1;
    catch_up.max_rows = 1;
    return catch_up;
  }
  const int known = known_after(span, state);
  catch_up.end = min(known, args.max_len);
  catch_up.first = max(state.draft.computed, min(args.first_entry, catch_up.end));
  catch_up.findable = has_sampled(span) ? min(catch_up.end, known - 1) : catch_up.end;
  if (args.in_order != 0) catch_up.findable = catch_up.first;
  catch_up.max_rows = plan.draft_rows;
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

// Entries that the page headers know as exact. Each thread reads one block of its span; a warp goes
// on together where that block is complete.
__device__ void find_first(const DraftRowsArgs& args, CatchUp& mine) {
  const BatchState& batch = args.batch;
  bool goes_on = false;
  if (mine.slot >= 0 && mine.first < mine.findable) {
    const int next_block = (mine.first / batch.block_size + 1) * batch.block_size;
    mine.first =
        exact_entries(batch, mine.slot, args.drafter, mine.first, min(mine.findable, next_block));
    goes_on = mine.first == next_block && mine.first < mine.findable;
  }
  for (uint32_t rest = __ballot_sync(0xffffffffu, goes_on); rest != 0; rest &= rest - 1) {
    const int lane = __ffs(static_cast<int>(rest)) - 1;
    const int slot = __shfl_sync(0xffffffffu, mine.slot, lane);
    const int from = __shfl_sync(0xffffffffu, mine.first, lane);
    const int end = __shfl_sync(0xffffffffu, mine.findable, lane);
    const int first = find_exact(batch, slot, args.drafter, from, end);
    if (static_cast<int>(threadIdx.x % 32) == lane) mine.first = first;
  }
}

// Whether another span has claimed the block, as far as that can be told.
__device__ bool claim(SpanChunk& chunk, int block) {
  int at = block * 0x9E3779B1u % kMaxClaims;
  for (int i = 0; i < kMaxClaims; ++i) {
    const int seen = atomicCAS(&chunk.claims[at], -1, block);
    if (seen == -1) return false;
    if (seen == block) return true;
    at = (at + 1) % kMaxClaims;
  }
  return true;
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

// Whether two spans work on one block, so that what one adds is what the other finds. The rows of
// the chunk are [begin, end).
__device__ bool share_blocks(const DraftRowsArgs& args, SpanChunk& chunk, int begin, int end) {
  const BatchState& batch = args.batch;
  bool shared = false;
  const CatchUp& mine = chunk.spans[threadIdx.x];
  if (mine.slot >= 0 && mine.first < mine.end && mine.missing() == 0) {
    shared = claim(chunk, kv_slot_at(batch, mine.slot, mine.first) / batch.block_size);
  }
  for (int row = begin + threadIdx.x; row < end; row += kDraftThreads) {
    const int i = span_of_row(chunk, row);
    const int offset = row - chunk.row_begin[i];
    const int position = chunk.spans[i].first + offset;
    if (offset != 0 && position % batch.block_size != 0) continue;
    shared |= claim(chunk, kv_slot_at(batch, chunk.spans[i].slot, position) / batch.block_size);
  }
  return __syncthreads_or(shared) != 0;
}

// One span after the other: what those before add is found.
__device__ void find_in_order(const DraftRowsArgs& args, SpanChunk& chunk, int room) {
  for (int i = 0; i < chunk.num_spans; ++i) {
    CatchUp& span = chunk.spans[i];
    if (span.slot < 0) continue;
    span.first = exact_entries(args.batch, span.slot, args.drafter, span.first,
                               max(span.first, span.findable));
    const int count = min(span.missing(), room);
    raise_draft_counts(args.batch, span.slot, args.drafter, span.first, span.first + count);
    room -= count;
  }
}

// Gives the chunk's spans their rows from `begin` on; returns the end of the rows.
__device__ int place_rows(SpanChunk& chunk, int begin, int room, int* scratch) {
  const int missing = chunk.spans[threadIdx.x].missing();
  const int sum = block_scan<kDraftThreads>(missing, scratch);
  chunk.row_begin[threadIdx.x] = begin + min(sum - missing, room);
  const int end = begin + min(scratch[kDraftThreads - 1], room);
  __syncthreads();
  return end;
}

// The slot of span i gets `count` rows; whether its last one wants logits.
__device__ bool settle(const DraftRowsArgs& args, const CatchUp& mine, int i, int count) {
  if (mine.slot < 0) return false;
  const BatchState& batch = args.batch;
  SlotState& state = batch.slots[mine.slot];
  const SpanState& span = args.spans[i];
  if (args.last_only == 0) {
    if (count == 0 && mine.first > state.draft.computed) {
      raise_draft_counts(batch, mine.slot, args.drafter, mine.first - 1, mine.first);
    }
    state.draft.computed = mine.first + count;
  }
  if (!has_other_drafts(state, batch.params[mine.slot], args.drafter)) state.num_draft_tokens = 0;
  const bool drafts = count > 0 && mine.first + count == state.len && wants_drafts(span, state);
  if (!drafts) state.draft.num_draft_tokens = 0;
  return drafts;
}

__device__ void fill_row(const DraftRowsArgs& args, const SpanChunk& chunk, int row, int end) {
  const BatchState& batch = args.batch;
  const int i = span_of_row(chunk, row);
  const int slot = chunk.spans[i].slot;
  const int position = chunk.spans[i].first + row - chunk.row_begin[i];
  const int place = place_draft_row(args.out, batch, row, slot, position);
  const int id = batch.token_pages[place];
  args.out.rows.token_ids[row] = args.token_map == nullptr ? id : args.token_map[id];
  args.out.source[row] = position > 0 ? kv_slot_at(batch, slot, position - 1) : 0;
  if (args.out.seen != nullptr) args.out.seen[row] = max(position - 1, 0);
  const int next_span = i + 1 < chunk.num_spans ? chunk.row_begin[i + 1] : end;
  if (args.last_only != 0) return;
  if (row + 1 == next_span || (position + 1) % batch.block_size == 0) {
    raise_draft_counts(batch, slot, args.drafter, position, position + 1);
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
  for (int first_span = 0; first_span < num_spans; first_span += kDraftThreads) {
    const int i = first_span + threadIdx.x;
    CatchUp mine = i < num_spans ? catch_up_of(args, plan.spans[i], args.spans[i]) : CatchUp{};
    find_first(args, mine);
    chunk.spans[threadIdx.x] = mine;
    for (int c = threadIdx.x; c < kMaxClaims; c += kDraftThreads) chunk.claims[c] = -1;
    if (threadIdx.x == 0) chunk.num_spans = min(kDraftThreads, num_spans - first_span);
    const int room = args.max_rows - rows;
    int end = place_rows(chunk, rows, room, scratch);
    if (args.last_only == 0 && share_blocks(args, chunk, rows, end)) {
      if (threadIdx.x == 0) find_in_order(args, chunk, room);
      __syncthreads();
      end = place_rows(chunk, rows, room, scratch);
    }
    const int next = static_cast<int>(threadIdx.x) + 1;
    const int count =
        (next < kDraftThreads ? chunk.row_begin[next] : end) - chunk.row_begin[threadIdx.x];
    const bool drafts = settle(args, chunk.spans[threadIdx.x], i, count);
    const int order = block_scan<kDraftThreads>(drafts ? 1 : 0, scratch);
    if (drafts) {
      args.out.rows.logits_rows[logits + order - 1] = chunk.row_begin[threadIdx.x] + count - 1;
    }
    logits += scratch[kDraftThreads - 1];
    for (int row = rows + threadIdx.x; row < end; row += kDraftThreads) {
      fill_row(args, chunk, row, end);
    }
    rows = end;
    __syncthreads();
  }
  end_draft_rows(args.out, args.batch, rows, logits, args.max_rows);
}

}  // namespace

void launch_draft_rows(const void* args, cudaStream_t stream) {
  launch_kernel(draft_rows_kernel, 1, kDraftThreads, 0, stream, op_args<DraftRowsArgs>(args));
}

}  // namespace foretoken::cuda
