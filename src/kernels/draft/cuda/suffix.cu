#include "kernels/draft/suffix.h"

#include "kernels/cuda/block_scan.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/draft/cuda/own_text.cuh"
#include "kernels/draft/draft_slots.h"
#include "kernels/draft_entries.h"
#include "kernels/draft_lists.h"
#include "kernels/plan_layout.h"

namespace foretoken::cuda {
namespace {

namespace table = suffix_table;

constexpr int kThreads = 1024;
constexpr uint32_t kNoBucket = ~0u;
static_assert(table::kNumLevels * table::kWays <= 32, "a warp looks at all ways of a step");

// What the block learns of up to kThreads spans.
struct NewTokens {
  int32_t slot[kThreads];
  int32_t begin[kThreads];   // first position
  int32_t end[kThreads];     // positions of the spans up to this one
  uint32_t clock[kThreads];  // the table's, as the span's tokens are taken in
};

// What is taken in at once: an id behind each of the pieces before it.
struct Pieces {
  table::Key key[kThreads];
  int32_t id[kThreads];
  uint32_t clock[kThreads];
};

__device__ int first_new(const SuffixArgs& args, const SpanState& span) {
  const SlotParams& params = args.batch.params[span.slot];
  return max(params.prompt_len, learnt_ever(args.batch.slots[span.slot], params, args.drafter));
}

// Fills `tokens` for the spans from `first` on; returns the number of positions, in every thread.
__device__ int gather_spans(const SuffixArgs& args, int first, int num_spans, NewTokens& tokens,
                            int* scratch) {
  const int index = first + threadIdx.x;
  int count = 0;
  int begins = 0;
  if (index < num_spans) {
    const SpanState& span = args.spans[index];
    const SlotParams& params = args.batch.params[span.slot];
    SlotState& state = args.batch.slots[span.slot];
    const int begin = first_new(args, span);
    const int known = known_after(span, state);
    if (serves(params, args.drafter) && begin < known) {
      count = known - begin;
      begins = learnt_ever(state, params, args.drafter) == 0;
    }
    tokens.slot[threadIdx.x] = span.slot;
    tokens.begin[threadIdx.x] = begin;
  }
  tokens.end[threadIdx.x] = block_scan<kThreads>(count, scratch);
  const int total = scratch[kThreads - 1];
  const uint32_t before = *args.table.clock;
  tokens.clock[threadIdx.x] = before + block_scan<kThreads>(begins, scratch);
  if (threadIdx.x == 0) *args.table.clock = before + scratch[kThreads - 1];
  if (count > 0) {
    const int slot = args.spans[index].slot;
    learnt_of(args.batch.slots[slot], args.batch.params[slot], args.drafter) =
        tokens.begin[threadIdx.x] + count;
  }
  __syncthreads();
  return total;
}

// The span whose tokens hold the `at`th position of all.
__device__ int span_of(const NewTokens& tokens, int at) {
  int low = 0;
  for (int high = kThreads - 1; low < high;) {
    const int middle = (low + high) / 2;
    if (tokens.end[middle] > at) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// One thread: the piece of one level before one position.
__device__ void make_piece(const SuffixArgs& args, const NewTokens& tokens, int item,
                           Pieces& pieces) {
  const int at = item / table::kNumLevels;
  const int span = span_of(tokens, at);
  const int slot = tokens.slot[span];
  const int p = tokens.begin[span] + at - (span > 0 ? tokens.end[span - 1] : 0);
  const int length = table::level_tokens(args.max_depth, item % table::kNumLevels);
  pieces.key[threadIdx.x].bucket = kNoBucket;
  if (length == 0 || length > p) return;
  const auto id_back = [&](int i) { return *token_at(args.batch, slot, p - 1 - i); };
  pieces.key[threadIdx.x] = table::key_of(args.table, args.batch.params[slot], length, id_back);
  pieces.id[threadIdx.x] = *token_at(args.batch, slot, p);
  pieces.clock[threadIdx.x] = tokens.clock[span];
}

// Takes in `count` pieces, each bucket's by the thread of the first of them, in their order. Two
// seldom fall into one bucket, so that nearly all threads wait for their bucket's entries at once.
__device__ void learn_pieces(const SuffixArgs& args, const Pieces& pieces, int count) {
  const int own = static_cast<int>(threadIdx.x);
  if (own >= count) return;
  const uint32_t bucket = pieces.key[own].bucket;
  if (bucket == kNoBucket) return;
  for (int i = 0; i < own; ++i) {
    if (pieces.key[i].bucket == bucket) return;
  }
  table::learn(args.table, pieces.key[own], pieces.id[own], pieces.clock[own]);
  for (int i = own + 1; i < count; ++i) {
    if (pieces.key[i].bucket != bucket) continue;
    table::learn(args.table, pieces.key[i], pieces.id[i], pieces.clock[i]);
  }
}

// One block.
__global__ void __launch_bounds__(kThreads) suffix_learn_kernel(SuffixArgs args) {
  extern __shared__ __align__(16) char shared[];
  auto& tokens = *reinterpret_cast<NewTokens*>(shared);
  auto& pieces = *reinterpret_cast<Pieces*>(shared + sizeof(NewTokens));
  int* scratch = reinterpret_cast<int*>(shared + sizeof(NewTokens) + sizeof(Pieces));
  wait_for_previous();
  const PlanView plan = plan_view(const_cast<void*>(args.plan), args.limits);
  const int num_spans = plan.header->num_spans;
  for (int first = 0; first < num_spans; first += kThreads) {
    const int items = gather_spans(args, first, num_spans, tokens, scratch) * table::kNumLevels;
    for (int begin = 0; begin < items; begin += kThreads) {
      const int count = min(items - begin, kThreads);
      if (threadIdx.x < count) make_piece(args, tokens, begin + threadIdx.x, pieces);
      __syncthreads();
      learn_pieces(args, pieces, count);
      __syncthreads();
    }
  }
}

// The last tokens of a slot's text, drafts included.
struct Tail {
  const int32_t* known;  // known[i]: with i known ones behind it
  const int32_t* drafts;
  int32_t num_draft_tokens;

  __device__ int32_t operator()(int32_t i) const {
    return i < num_draft_tokens ? drafts[num_draft_tokens - 1 - i] : known[i - num_draft_tokens];
  }
};

// One warp: a lane for each way of each level. The lane with the longest piece of text that the
// table holds, or -1; `entry` is that of the own lane.
__device__ int find_in_table(const SuffixArgs& args, const SlotParams& params, int len,
                             const Tail& tail, uint32_t clock, table::Entry& entry) {
  const int level = threadIdx.x / table::kWays;
  const int tokens = level < table::kNumLevels ? table::level_tokens(args.max_depth, level) : 0;
  bool held = false;
  if (tokens > 0 && tokens <= len) {
    const table::Key key = table::key_of(args.table, params, tokens, tail);
    entry = args.table.entries[int64_t{key.bucket} * table::kWays + threadIdx.x % table::kWays];
    held = table::holds(args.table, entry, key, clock);
  }
  return __ffs(static_cast<int>(__ballot_sync(0xffffffffu, held))) - 1;
}

// Of a slot's text in the table: the tokens of its first suffix, or 0, and the drafts.
struct TableDrafts {
  int32_t matched;
  int32_t count;
  int32_t ids[kMaxDraftTokens];
};

// One warp.
__device__ void draft_from_table(const SuffixArgs& args, int slot, int wanted, const int32_t* known,
                                 TableDrafts& out) {
  const SlotParams& params = args.batch.params[slot];
  const int len = args.batch.slots[slot].len;
  const uint32_t clock = *args.table.clock;
  int count = 0;
  int matched = 0;
  int chance = spec::RateConstants::kOne;
  for (int most = wanted; count < most;) {
    table::Entry entry{};
    const int lane =
        find_in_table(args, params, len + count, {known, out.ids, count}, clock, entry);
    if (lane < 0) break;
    const int tokens = table::level_tokens(args.max_depth, lane / table::kWays);
    const int own_chance = table::chance_of(entry, tokens);
    chance = spec::next_survival(chance,
                                 static_cast<uint16_t>(__shfl_sync(0xffffffffu, own_chance, lane)));
    const int32_t id = __shfl_sync(0xffffffffu, entry.ids[0], lane);
    if (chance < args.min_chance) break;
    if (count == 0) {
      most = table::max_draft_tokens(tokens, args.max_factor, wanted);
      if (most == 0) break;
      matched = tokens;
    }
    if (threadIdx.x == 0) out.ids[count] = id;
    __syncwarp();
    ++count;
  }
  if (threadIdx.x == 0) {
    out.matched = matched;
    out.count = count;
  }
}

// One warp: whether the text ends with a long piece that is known.
__device__ bool finds_sure(const SuffixArgs& args, int slot, const int32_t* known) {
  table::Entry entry{};
  const int lane = find_in_table(args, args.batch.params[slot], args.batch.slots[slot].len,
                                 {known, nullptr, 0}, *args.table.clock, entry);
  if (lane < 0) return false;
  const int tokens = table::level_tokens(args.max_depth, lane / table::kWays);
  const int sure = table::is_sure(entry, tokens, args.max_depth);
  return __shfl_sync(0xffffffffu, sure, lane) != 0;
}

// As many drafts as the plan grants the span, and it can use.
__device__ int suffix_room(const SuffixArgs& args, const SpanPlan& span) {
  const SlotParams& params = args.batch.params[span.slot];
  const int granted =
      min(granted_drafts(span, params, args.drafter), min(args.num_draft_tokens, kMaxDraftTokens));
  return max_draft_tokens(args.batch.slots[span.slot], params, granted, args.draft_max_len);
}

// One warp: the number of drafts of a slot that decodes, more than `wanted` where it finds a long
// piece of text.
__device__ int wake(const SuffixArgs& args, const SpanPlan& span, int wanted,
                    const int32_t* known) {
  if (args.batch.params[span.slot].max_draft_tokens <= 0) return wanted;
  if (!finds_sure(args, span.slot, known)) return wanted;
  const int most = max(wanted, suffix_room(args, span));
  if (threadIdx.x == 0) {
    SlotState& state = args.batch.slots[span.slot];
    state.found_by = 1 + args.drafter;
    state.draft.num_draft_tokens = max(state.draft.num_draft_tokens, most);
  }
  return most;
}

// A slot that decodes.
__device__ void propose(const SuffixArgs& args, const SpanPlan& span, int chosen) {
  __shared__ int32_t tail[kMaxTail];
  __shared__ TableDrafts drafts;
  __shared__ int wanted;
  const int slot = span.slot;
  const int len = args.batch.slots[slot].len;
  load_tail(args.batch, slot, len, args.max_depth, tail);
  if (threadIdx.x == 0) {
    drafts.matched = drafts.count = 0;
    wanted = chosen;
  }
  __syncthreads();
  if (threadIdx.x < 32 && args.table.num_buckets > 0) {
    const int most = wake(args, span, chosen, tail);
    if (threadIdx.x == 0) wanted = most;
    if (most > 0) draft_from_table(args, slot, most, tail, drafts);
  }
  __syncthreads();
  if (wanted == 0) return;
  const SlotParams& params = args.batch.params[slot];
  const prediction_match::Predicted predicted{
      args.batch.lists.prediction + int64_t{slot} * args.batch.lists.max_prediction,
      params.num_prediction, params.prompt_len, len};
  const uint64_t key = find_predicted(args.batch, slot, predicted, prediction_match::kLeastTokens);
  const int length = prediction_match::length_of(key);
  const int longer = max(length, drafts.matched) + 1;
  const uint64_t own = find_own(args.batch, slot, tail, len,
                                max(table::least_tokens(args.max_depth), longer), args.max_depth);
  if (threadIdx.x != 0) return;
  SlotState& state = args.batch.slots[slot];
  if (own != 0) {
    const int matched = static_cast<int>(own >> 32);
    draft_own(args.batch, slot, own, table::max_draft_tokens(matched, args.max_factor, wanted));
  } else if (key != 0 && length >= drafts.matched) {
    draft_predicted(state, predicted, key, wanted);
  } else {
    for (int i = 0; i < drafts.count; ++i) state.drafts[i] = drafts.ids[i];
    state.num_draft_tokens = drafts.count;
  }
}

// One block: the slot of one span.
__global__ void __launch_bounds__(kOwnThreads) suffix_propose_kernel(SuffixArgs args) {
  wait_for_previous();
  let_next_start();
  const PlanView plan = plan_view(const_cast<void*>(args.plan), args.limits);
  if (blockIdx.x >= plan.header->num_spans) return;
  const SpanPlan& span = plan.spans[blockIdx.x];
  const SlotParams& params = args.batch.params[span.slot];
  SlotState& state = args.batch.slots[span.slot];
  if (!serves(params, args.drafter)) return;
  const bool turn = has_turn(state, params, args.drafter);
  const int wanted = lookup_drafts(state, min(args.num_draft_tokens, kMaxDraftTokens));
  __syncthreads();
  if (threadIdx.x == 0) {
    state.found_by = 0;
    if (turn) state.num_draft_tokens = state.from_prediction = 0;
  }
  __syncthreads();
  if (turn && is_decoding(state)) propose(args, span, wanted);
}

}  // namespace

void launch_suffix(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<SuffixArgs>(packed);
  constexpr int kShared = sizeof(NewTokens) + sizeof(Pieces) + kThreads * sizeof(int);
  if (args.table.num_buckets > 0) {
    cudaFuncSetAttribute(suffix_learn_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
    launch_kernel(suffix_learn_kernel, 1, kThreads, kShared, stream, args);
  }
  if (args.num_draft_tokens == 0 && args.table.num_buckets == 0) return;
  launch_kernel(suffix_propose_kernel, args.limits.max_spans, kOwnThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
