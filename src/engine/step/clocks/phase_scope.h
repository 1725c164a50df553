#pragma once
#include "base/clock.h"
#include "base/trace.h"
#include "engine/step/clocks/step_clock.h"

namespace foretoken {

// A phase of the engine thread, from here to the end of the scope: its time goes to the clock and,
// where there is a lane, the phase becomes an event of the trace.
class PhaseScope {
 public:
  PhaseScope(StepClock& clock, TraceLane* lane, HostPhase phase, uint64_t step)
      : clock_(clock), lane_(lane), phase_(phase), step_(step), begin_ns_(now_ns()) {
    if (has_ranges()) lane_->ranges().begin(host_phase_name(phase_), step_);
  }
  ~PhaseScope() {
    if (has_ranges()) lane_->ranges().end();
    if (dropped_) return;
    const int64_t end_ns = now_ns();
    clock_.note_phase(phase_, end_ns - begin_ns_);
    if (lane_ != nullptr) lane_->add(host_phase_name(phase_), begin_ns_, end_ns, step_);
  }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

  // There was nothing to do: it does not count.
  void drop() { dropped_ = true; }

 private:
  bool has_ranges() const { return lane_ != nullptr && lane_->ranges().begin != nullptr; }

  StepClock& clock_;
  TraceLane* const lane_;
  const HostPhase phase_;
  const uint64_t step_;
  const int64_t begin_ns_;
  bool dropped_ = false;
};

}  // namespace foretoken
