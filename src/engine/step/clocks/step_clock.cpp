#include "engine/step/clocks/step_clock.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace foretoken {

const char* host_phase_name(HostPhase phase) {
  constexpr const char* kNames[] = {"plan", "encode", "submit", "wait", "reconcile"};
  static_assert(std::size(kNames) == static_cast<size_t>(HostPhase::kCount));
  return kNames[static_cast<size_t>(phase)];
}

void StepClock::note_step(uint64_t step, bool follows, const StepStamps* stamps) {
  if (step == 0) return;
  const StepStamps& before = stamps[(step - 1) % kStepRingSize];
  add(num_steps_, 1);
  add(device_ns_, before.end_ns - before.begin_ns);
  add(draft_ns_, before.end_ns - before.published_ns);
  if (follows) note_gap(stamps[step % kStepRingSize].begin_ns - before.end_ns);
}

void StepClock::note_tokens(int64_t num_tokens) {
  const auto& bounds = StepTokens::kBounds;
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), num_tokens) - bounds.begin();
  add(steps_of_tokens_[static_cast<size_t>(bucket)], 1);
  add(num_tokens_, num_tokens);
}

StepTokens StepClock::step_tokens() const {
  StepTokens tokens;
  for (size_t i = 0; i < steps_of_tokens_.size(); ++i) {
    tokens.num_steps[i] = steps_of_tokens_[i].load();
  }
  tokens.sum = num_tokens_.load();
  return tokens;
}

void StepClock::note_gap(int64_t ns) {
  const int64_t gap = std::max<int64_t>(ns, 0);
  add(num_gaps_, 1);
  add(idle_ns_, gap);
  const auto bucket = static_cast<int>(kPerOctave * std::log2(static_cast<double>(gap + 1)));
  add(gaps_[static_cast<size_t>(std::min(bucket, kNumBuckets - 1))], 1);
}

// The middle of the bucket in which it lies.
int64_t StepClock::gap_quantile(double share, int64_t num_gaps) const {
  auto left = static_cast<int64_t>(share * static_cast<double>(num_gaps));
  for (int i = 0; i < kNumBuckets; ++i) {
    left -= gaps_[static_cast<size_t>(i)].load();
    if (left < 0) return static_cast<int64_t>(std::exp2((i + 0.5) / kPerOctave)) - 1;
  }
  return 0;
}

StepTiming StepClock::timing() const {
  StepTiming timing;
  timing.num_steps = num_steps_.load();
  timing.device_ns = device_ns_.load();
  timing.draft_ns = draft_ns_.load();
  timing.num_gaps = num_gaps_.load();
  timing.idle_ns = idle_ns_.load();
  timing.idle_median_ns = gap_quantile(0.5, timing.num_gaps);
  timing.idle_p99_ns = gap_quantile(0.99, timing.num_gaps);
  timing.num_planned = num_planned_.load();
  timing.plan_ns = host_ns(HostPhase::kPlan);
  timing.encode_ns = host_ns(HostPhase::kEncode);
  timing.submit_ns = host_ns(HostPhase::kSubmit);
  timing.wait_ns = host_ns(HostPhase::kWait);
  timing.reconcile_ns = host_ns(HostPhase::kReconcile);
  return timing;
}

}  // namespace foretoken
