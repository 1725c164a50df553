#include "engine/step/prefill_pacer.h"

#include <algorithm>
#include <cmath>

namespace foretoken {

PrefillPacer::PrefillPacer(int most)
    : max_(std::max(most, kLeast)), full_(std::min(kFirst, max_)), alone_(max_) {}

void PrefillPacer::planned(const StepPlan& plan) {
  if (plan.num_paced_rows > 0) at_half_ = !at_half_;
}

// Steps with rows of other prompts say nothing: they vary.
void PrefillPacer::observe(const StepPlan& plan, int64_t ns) {
  if (plan.num_other_prompt_rows == 0 && plan.num_lone_rows > 0) {
    adjust_alone(plan.num_lone_rows, ns);
  }
  const bool is_half = plan.paced_limit == half();
  if (plan.num_paced_rows == 0 || plan.num_other_prompt_rows > 0) return;
  if (!is_half && plan.paced_limit != full_) return;
  Sample& sample = samples_[is_half ? 0 : 1];
  if (sample.count == 0 || ns < sample.ns) {
    sample.ns = ns;
    sample.rows = plan.num_paced_rows;
  }
  ++sample.count;
  if (samples_[0].count >= kSamples && samples_[1].count >= kSamples) adjust();
}

void PrefillPacer::adjust_alone(int rows, int64_t ns) {
  const double fitting =
      static_cast<double>(kLongestAloneNs) * rows / static_cast<double>(std::max<int64_t>(ns, 1));
  alone_ = std::clamp(static_cast<int>(std::min(fitting, 2.0 * alone_)),
                      std::min(kLeastAlone, max_), max_);
}

// On average three quarters of full_ are computed. Rows that cost nothing to be seen, because the
// weights are read anyhow, double until they do.
void PrefillPacer::adjust() {
  const auto& [fewer, more] = samples_;
  const double row_ns =
      static_cast<double>(more.ns - fewer.ns) / std::max(more.rows - fewer.rows, 1);
  const double rest_ns = static_cast<double>(fewer.ns) - row_ns * fewer.rows;
  double next = 2.0 * full_;
  if (more.rows > fewer.rows && row_ns > 0) {
    next = std::clamp(std::max(rest_ns, 0.0) / row_ns / 0.75, 0.5 * full_, 2.0 * full_);
  }
  full_ = std::clamp(static_cast<int>(std::lround(next)), kLeast, max_);
  samples_ = {};
}

}  // namespace foretoken
