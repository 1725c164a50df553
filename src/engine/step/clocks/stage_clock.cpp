#include "engine/step/clocks/stage_clock.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace foretoken {

void StageClock::note_step(const StepStamps& stamps) {
  if (num_steps_ > 0) {
    const int64_t gap = stamps.begin_ns - last_end_ns_;
    if (gap > 0 && gap < kPause) idle_ns_ += gap;
  }
  busy_ns_ += stamps.published_ns - stamps.begin_ns;
  last_end_ns_ = stamps.published_ns;
  ++num_steps_;
}

std::string StageClock::text() const {
  const double busy = static_cast<double>(busy_ns_) / 1e9;
  const double idle = static_cast<double>(idle_ns_) / 1e9;
  const double all = std::max(busy + idle, 1e-9);
  return fmt::format("{} steps, busy {:.2f} s, idle {:.2f} s ({:.1f} %)", num_steps_, busy, idle,
                     100 * idle / all);
}

}  // namespace foretoken
