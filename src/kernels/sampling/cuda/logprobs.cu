#include "kernels/sampling/logprobs.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/plan_layout.h"
#include "kernels/sampling/cuda/row_search.cuh"

namespace foretoken::cuda {
namespace {

namespace sm = sample_math;

constexpr int kCandidates = 2 * kMaxLogprobs;
static_assert(kCandidates <= 2 * kTeamThreads);

// The ids that can be among the likeliest, in the shared memory of the team's first block.
struct TopShared {
  uint64_t keys[kCandidates];  // ordered key of the logit, ~id
  int count;
};

// What the passes over a row find.
struct RowFacts {
  bool valid;
  bool processed;
  sm::DrawnIds drawn;
  int rank;
  double log_sum;

  __device__ float logprob(float logit) const {
    return processed ? sm::drawn_logprob_of(logit, drawn, log_sum)
                     : sm::logprob_of(logit, drawn.max, log_sum);
  }
};

// What a row keeps for its draw; temperature 0 keeps the highest logit, at temperature 1.
template <int Size>
__device__ sm::DrawnIds drawn_ids(const MaskedRow& row, const SlotParams& params, float max,
                                  const Team<Size>& team) {
  if (params.temperature <= 0.0f) return {max, 1.0f, 0.0f, sm::ordered_key(max)};
  return {max, params.temperature, params.min_p, kept_threshold<Size>(row, params, max, team)};
}

// log(sum of the weights): of all ids, or of what the draw keeps.
template <int Size>
__device__ double log_of_weights(const MaskedRow& row, const RowFacts& facts,
                                 const Team<Size>& team) {
  uint64_t mass = 0;
  const auto add = [&](float weight) {
    const sm::FineMass part = sm::fine_mass_of(weight);
    mass += (uint64_t{part.high} << 20) + part.low;
  };
  if (facts.processed) {
    for_each_logit<Size>(row, [&](float logit) { add(sm::drawn_weight_of(logit, facts.drawn)); });
  } else {
    const float max = facts.drawn.max;
    for_each_logit<Size>(row, [&](float logit) { add(sm::exp_nonpositive(sm::sub(logit, max))); });
  }
  return sm::log_of_fine_mass(team.sum(mass));
}

template <int Size>
__device__ RowFacts row_facts(const MaskedRow& row, const SlotParams& params, int32_t id,
                              const Team<Size>& team) {
  const float own = row.logits[id];
  uint32_t highest = 0;  // all ones: invalid row
  uint64_t above = 0;
  for_each_logit<Size>(row, [&](float logit) {
    const uint32_t key = sm::is_invalid_logit(logit) ? ~0u : sm::ordered_key(logit);
    highest = key > highest ? key : highest;
    above += logit > own;
  });
  highest = static_cast<uint32_t>(
      team.reduce(highest, [](uint64_t a, uint64_t b) { return a > b ? a : b; }));
  RowFacts facts{false, wants_processed(params), {}, 0, 0.0};
  if (highest == ~0u || highest <= sm::kKeyOfMinusInf) return facts;
  facts.valid = true;
  facts.rank = 1 + static_cast<int>(team.sum(above));
  facts.drawn.max = sm::float_of_key(highest);
  if (facts.processed) facts.drawn = drawn_ids<Size>(row, params, facts.drawn.max, team);
  facts.log_sum = log_of_weights<Size>(row, facts, team);
  return facts;
}

// Puts the ids with a key above `kth`, and of those with that key the ids up to `last_tie`, into
// `top`; returns their number, which may exceed what `top` holds.
template <int Size>
__device__ int collect(const MaskedRow& row, uint32_t kth, uint32_t last_tie,
                       const Team<Size>& team, TopShared& top) {
  if (threadIdx.x == 0) top.count = 0;
  team.sync();
  for_each_block<Size>(row, [&](int first, const float(&logits)[4]) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const auto id = static_cast<uint32_t>(first + j);
      const uint32_t key = sm::ordered_key(logits[j]);
      if (first + j >= row.vocab || key < kth || (key == kth && id > last_tie)) continue;
      const int place = atomicAdd(&team.of(top.count, 0), 1);
      if (place < kCandidates) team.of(top.keys[place], 0) = (uint64_t{key} << 32) | ~id;
    }
  });
  team.sync();
  const int count = team.of(top.count, 0);
  team.sync();
  return count;
}

// The id up to which `wanted` ids have the key `kth`.
template <int Size>
__device__ uint32_t last_tie(const MaskedRow& row, uint32_t kth, uint64_t wanted,
                             const Team<Size>& team) {
  constexpr uint32_t kHighest = (1u << 30) - 1;
  uint32_t prefix = 0;  // of kHighest - id, so that the lowest ids are found first
  uint32_t known = 0;
  for (const int shift : {20, 10, 0}) {
    team.clear_bins();
    for_each_block<Size>(row, [&](int first, const float(&logits)[4]) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const uint32_t place = kHighest - static_cast<uint32_t>(first + j);
        if (first + j >= row.vocab || sm::ordered_key(logits[j]) != kth) continue;
        if ((place & known) == prefix) atomicAdd(&team.shared.bins[place >> shift & 1023u], 1ull);
      }
    });
    team.find_bin([=](uint64_t) { return wanted; });
    prefix |= static_cast<uint32_t>(team.shared.answer_bin) << shift;
    known |= 1023u << shift;
    wanted = team.shared.answer_rest;
  }
  return kHighest - prefix;
}

// Sorts the first `count` keys in descending order: a bitonic network over the next power of two.
__device__ void sort_keys(uint64_t* keys, int count) {
  int size = 2;
  while (size < count) size *= 2;
  for (int i = count + threadIdx.x; i < size; i += kTeamThreads) keys[i] = 0;
  for (int length = 2; length <= size; length *= 2) {
    for (int distance = length / 2; distance > 0; distance /= 2) {
      __syncthreads();
      const int pair = threadIdx.x;
      const int low = pair / distance * 2 * distance + pair % distance;
      const int high = low + distance;
      if (pair >= size / 2) continue;
      const uint64_t a = keys[low];
      const uint64_t b = keys[high];
      const bool falling = (low & length) == 0;
      if ((a < b) == falling) {
        keys[low] = b;
        keys[high] = a;
      }
    }
  }
  __syncthreads();
}

// The `wanted` likeliest ids; only the first block of the team writes.
template <int Size>
__device__ void write_top(const MaskedRow& row, const RowFacts& facts, int wanted,
                          const Team<Size>& team, TopShared& shared, TopLogprob* top) {
  const auto one = [](float) { return uint64_t{1}; };
  const auto target = [=](uint64_t) { return static_cast<uint64_t>(wanted); };
  const CoarseBins coarse{facts.drawn.max, kTeamBins / 32.0f};
  const uint32_t kth = highest_threshold<Size>(row, coarse, team, one, target);
  const uint64_t ties = team.shared.answer_rest;
  int count = collect<Size>(row, kth, ~0u, team, shared);
  if (count > kCandidates) {
    count = collect<Size>(row, kth, last_tie<Size>(row, kth, ties, team), team, shared);
  }
  if (Team<Size>::rank() != 0) return;
  sort_keys(shared.keys, count);
  if (threadIdx.x >= wanted) return;
  const auto id = static_cast<int32_t>(~static_cast<uint32_t>(shared.keys[threadIdx.x]));
  top[threadIdx.x] = {id, facts.logprob(row.logits[id])};
}

// A team of Size blocks: one logits row.
template <int Size>
__global__ void __launch_bounds__(kTeamThreads) logprobs_kernel(LogprobsArgs args) {
  __shared__ TeamShared team_shared;
  __shared__ TopShared top_shared;
  wait_for_previous();
  let_next_start();
  const int i = blockIdx.x / Size;
  const int index = args.row_offset + i;
  const int live = live_rows(args.tensors.counts, RowKind::kLogits, args.row_offset, args.max_rows);
  if (i >= live || index >= args.limits.max_rows) return;
  const ResultView out = result_view(args.result, args.limits);
  const SlotParams& params = args.params[args.tensors.row_slot[args.tensors.logits_rows[index]]];
  const bool writes = threadIdx.x == 0 && Team<Size>::rank() == 0;
  const int32_t id = args.tensors.sampled[index];
  if (writes) out.rows[index] = {id, 0.0f, 0, kNoLogprobs};
  if (params.num_logprobs == kNoLogprobs || id < 0 || id >= args.vocab) return;
  const bool raw = args.raw != nullptr && shapes_logits(params) && !wants_processed(params);
  const float* logits = raw ? args.raw : args.logits;
  const MaskedRow row{logits + int64_t{i} * args.vocab, nullptr, 0, args.vocab};
  const Team<Size> team(team_shared);
  const RowFacts facts = row_facts<Size>(row, params, id, team);
  if (!facts.valid) return;
  const int wanted = min(min(num_alternatives(params), args.vocab), args.limits.max_top);
  if (writes) {
    out.rows[index] = {id, facts.logprob(row.logits[id]), facts.rank, wanted};
  }
  if (wanted <= 0) return;
  TopLogprob* top = out.top + int64_t{index} * args.limits.max_top;
  write_top<Size>(row, facts, wanted, team, top_shared, top);
}

}  // namespace

void launch_logprobs(const void* args, cudaStream_t stream) {
  launch_teams<LogprobsArgs>(
      {logprobs_kernel<8>, logprobs_kernel<4>, logprobs_kernel<2>, logprobs_kernel<1>},
      op_args<LogprobsArgs>(args), stream);
}

}  // namespace foretoken::cuda
