#include "kernels/draft/choose_lengths.h"

#include "kernels/cuda/block_scan.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/draft/draft_slots.h"
#include "kernels/draft_lists.h"
#include "kernels/plan_layout.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 1024;

// A level of survival to draft down to, with the tokens and the time that this brings.
struct Candidate {
  int64_t gain;
  int64_t ns;
  int level;
};

struct Shared {
  spec::StepVerifications step;
  int counts[spec::LevelConstants::kNumLevels];  // drafts beyond the least ones
  int num_slots;
  int least_drafts;
  int least_gain;
  int probe_priority;  // of the span that is the drafter's own probe
  int scratch[kThreads];
  Candidate candidates[spec::LevelConstants::kNumLevels];
};

// A span of the plan whose slot drafts with the drafter.
struct Served {
  SlotState& state;
  DraftRates& rates;
  bool has_turn;
  int most;
  int least;
};

__device__ bool is_served(const ChooseLengthsArgs& args, const SpanPlan& span) {
  return serves(args.batch.params[span.slot], args.drafter);
}

// `probe_priority`: 0, or of the span that is the drafter's own probe.
__device__ Served served(const ChooseLengthsArgs& args, const SpanPlan& span, int i,
                         int probe_priority) {
  SlotState& state = args.batch.slots[span.slot];
  const SlotParams& params = args.batch.params[span.slot];
  DraftRates& rates = rates_of(state, params, args.drafter);
  const bool has_turn = !has_other_drafts(state, params, args.drafter);
  const int granted = granted_drafts(span, params, args.drafter);
  const int most = has_turn && goes_on(args.spans[i], state)
                       ? max_draft_tokens(state, params, granted, args.draft_max_len)
                       : 0;
  const bool is_probe =
      probe_priority > 0 && spec::probe_priority(rates, most, i) == probe_priority;
  return {state, rates, has_turn, most, is_probe ? 1 : spec::least_drafts(rates, most)};
}

__device__ void clear(Shared& shared) {
  if (threadIdx.x < kMaxDraftTokens) {
    shared.step.accepted[threadIdx.x] = 0;
    shared.step.rejected[threadIdx.x] = 0;
  }
  if (threadIdx.x == 0) {
    shared.step.count = 0;
    shared.step.committed = 0;
    shared.step.first_unseen = kMaxDraftTokens;
    shared.num_slots = 0;
    shared.least_drafts = 0;
    shared.least_gain = 0;
    shared.probe_priority = 0;
  }
  if (threadIdx.x < spec::LevelConstants::kNumLevels) shared.counts[threadIdx.x] = 0;
  __syncthreads();
}

__device__ void note(spec::StepVerifications& step, const spec::Outcome& v) {
  for (int i = 0; i < v.accepted; ++i) atomicAdd(&step.accepted[i], 1);
  if (v.rejected) atomicAdd(&step.rejected[v.accepted], 1);
  if (v.accepted == v.drafted) atomicMin(&step.first_unseen, v.drafted);
  atomicAdd(&step.count, 1);
}

__device__ void update_rates(const ChooseLengthsArgs& args, const PlanView& plan, int num_spans,
                             spec::StepVerifications& step) {
  const ResultView result = result_view(const_cast<void*>(args.result), args.result_limits);
  DraftRates& prior = args.batch.priors[args.drafter];
  const int num_rates = args.max_draft_tokens;
  for (int i = threadIdx.x; i < num_spans; i += kThreads) {
    if (!is_served(args, plan.spans[i])) continue;
    const SlotParams& params = args.batch.params[plan.spans[i].slot];
    DraftRates& rates = rates_of(args.batch.slots[plan.spans[i].slot], params, args.drafter);
    const bool predicted = is_predicted(params);
    if (rates.num_rated == 0) {
      predicted ? spec::start_first_rates(rates, num_rates)
                : spec::start_rates(rates, prior, num_rates);
    }
    if (!predicted) {
      atomicAdd(&step.committed, rested_tokens(result.spans[i], params, args.drafter));
    }
    if (drafted_with(result.spans[i], params, args.drafter) == 0) continue;
    const spec::Outcome v = outcome_of(result.spans[i]);
    spec::rate_sequence(rates, v, num_rates);
    if (!predicted) note(step, v);
  }
  __syncthreads();
  if (threadIdx.x == 0) spec::rate_prior(prior, step, num_rates);
  __syncthreads();
}

// Makes the next verifications of what rested long count, and finds the drafter's own probe.
__device__ void expect_probes(const ChooseLengthsArgs& args, const PlanView& plan, int num_spans,
                              int& probe_priority) {
  DraftRates& prior = args.batch.priors[args.drafter];
  const bool wants_probe = spec::wants_probe(prior);
  for (int i = threadIdx.x; i < num_spans; i += kThreads) {
    if (!is_served(args, plan.spans[i])) continue;
    const Served slot = served(args, plan.spans[i], i, 0);
    spec::expect_probe(slot.rates);
    if (wants_probe) atomicMax(&probe_priority, spec::probe_priority(slot.rates, slot.most, i));
  }
  if (threadIdx.x == 0) spec::expect_probe(prior);
  __syncthreads();
}

// Counts the drafts of every level.
__device__ void count_drafts(const ChooseLengthsArgs& args, const PlanView& plan, int num_spans,
                             Shared& shared) {
  for (int i = threadIdx.x; i < num_spans; i += kThreads) {
    const SpanPlan& span = plan.spans[i];
    if (goes_on(args.spans[i], args.batch.slots[span.slot])) atomicAdd(&shared.num_slots, 1);
    if (!is_served(args, span)) continue;
    const Served slot = served(args, span, i, shared.probe_priority);
    int survival = spec::RateConstants::kOne;
    for (int k = 0; k < slot.most; ++k) {
      survival = spec::next_survival(survival, slot.rates.rates[k]);
      const int level = spec::level_of(survival);
      if (k < slot.least) {
        atomicAdd(&shared.least_drafts, 1);
        atomicAdd(&shared.least_gain, spec::level_gain(level));
      } else {
        atomicAdd(&shared.counts[level], 1);
      }
    }
  }
  __syncthreads();
}

// Whether `a` brings more tokens for its time, or as many with fewer drafts.
__device__ bool is_better(const Candidate& a, const Candidate& b) {
  const int64_t left = a.gain * b.ns;
  const int64_t right = b.gain * a.ns;
  return left > right || (left == right && a.level > b.level);
}

// spec::lowest_level, one thread for each level.
__device__ int lowest_level(const ChooseLengthsArgs& args, Shared& shared) {
  const spec::StepCost cost{args.row_ns, args.num_row_ns, args.draft_ns};
  const int level = spec::LevelConstants::kNumLevels - 1 - static_cast<int>(threadIdx.x);
  const int count = level >= 0 ? shared.counts[level] : 0;
  const int64_t rows = int64_t{shared.num_slots} + shared.least_drafts;
  const int64_t gain =
      int64_t{shared.num_slots} * spec::LevelConstants::kTokenGain + shared.least_gain;
  const int more_rows = block_scan<kThreads>(count, shared.scratch);
  const int more_gain =
      block_scan<kThreads>(level >= 0 ? count * spec::level_gain(level) : 0, shared.scratch);
  const Candidate none{gain, spec::cost_of(cost, rows), spec::LevelConstants::kNumLevels};
  if (level >= 0) {
    const Candidate mine{gain + more_gain, spec::cost_of(cost, rows + more_rows), level};
    shared.candidates[threadIdx.x] = count > 0 && is_better(mine, none) ? mine : none;
  }
  for (int half = spec::LevelConstants::kNumLevels / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) >= half) continue;
    const Candidate& other = shared.candidates[threadIdx.x + half];
    if (is_better(other, shared.candidates[threadIdx.x])) shared.candidates[threadIdx.x] = other;
  }
  __syncthreads();
  return shared.candidates[0].level;
}

// One block; a thread has spans.
__global__ void __launch_bounds__(kThreads) choose_lengths_kernel(ChooseLengthsArgs args) {
  __shared__ Shared shared;
  wait_for_previous();
  let_next_start();
  const PlanView plan = plan_view(const_cast<void*>(args.plan), args.limits);
  const int num_spans = min(plan.header->num_spans, args.limits.max_spans);
  clear(shared);
  update_rates(args, plan, num_spans, shared.step);
  expect_probes(args, plan, num_spans, shared.probe_priority);
  int level = 0;
  if (args.row_ns != nullptr) {
    count_drafts(args, plan, num_spans, shared);
    level = lowest_level(args, shared);
  }
  for (int i = threadIdx.x; i < num_spans; i += kThreads) {
    if (!is_served(args, plan.spans[i])) continue;
    const Served slot = served(args, plan.spans[i], i, shared.probe_priority);
    slot.state.draft.num_draft_tokens =
        spec::drafts_down_to(slot.rates, slot.least, slot.most, level);
    if (slot.has_turn) take_turn(slot.state, args.drafter);
  }
}

}  // namespace

void launch_choose_lengths(const void* args, cudaStream_t stream) {
  launch_kernel(choose_lengths_kernel, 1, kThreads, 0, stream, op_args<ChooseLengthsArgs>(args));
}

}  // namespace foretoken::cuda
