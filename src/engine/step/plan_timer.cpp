#include "engine/step/plan_timer.h"

#include <algorithm>
#include <bit>

namespace foretoken {

size_t PlanTimer::kind_of(const StepShape& shape, bool has_prompts) {
  const auto rows = static_cast<unsigned>(std::max(shape.max_rows, 1));
  const int width = std::bit_width(rows);
  const int size = 2 * width + (width > 1 ? static_cast<int>(rows >> (width - 2) & 1) : 0);
  return static_cast<size_t>(2 * std::min(size, kNumSizes - 1) + (has_prompts ? 1 : 0));
}

// A sixteenth of the time besides the margin: long steps differ by more.
int64_t PlanTimer::plan_at(const StepShape& shape, bool has_prompts, int64_t begin_ns) const {
  if (last_arrival_ns_ == 0 || begin_ns - last_arrival_ns_ > kArrivalsNs) return begin_ns;
  const Kind& kind = kinds_[kind_of(shape, has_prompts)];
  const int64_t shortest = *std::min_element(kind.last_ns.begin(), kind.last_ns.end());
  return begin_ns + std::max<int64_t>(shortest - shortest / 16 - margin_ns_, 0);
}

void PlanTimer::observe(const StepShape& shape, bool has_prompts, int64_t ns) {
  Kind& kind = kinds_[kind_of(shape, has_prompts)];
  kind.last_ns[static_cast<size_t>(kind.next)] = ns;
  kind.next = (kind.next + 1) % kNumTimes;
}

void PlanTimer::observe_idle(int64_t ns) {
  margin_ns_ = ns > kIdleNs ? std::min(2 * margin_ns_, kMaxMarginNs)
                            : std::max(margin_ns_ - margin_ns_ / 64, kLeastMarginNs);
}

}  // namespace foretoken
