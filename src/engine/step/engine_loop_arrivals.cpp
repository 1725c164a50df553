#include "base/clock.h"
#include "engine/step/engine_loop.h"

// Requests that come while steps run, and between turns of other work.

namespace foretoken {

Status EngineLoop::serve_until_idle() {
  while (!intake_.stopping()) {
    if (rest_gate_.is_wanted()) {
      rest_here();
      continue;
    }
    if (serve() || intake_.stopping()) continue;
    if (failed_.load()) break;
    if (live_.empty()) {
      scheduler_.drop_left_states();
      return {};
    }
    if (!rest_gate_.is_wanted()) intake_.wait();
  }
  return aborted("the engine ends");
}

void EngineLoop::end_turn(uint64_t next_step) {
  num_submitted_ = num_finished_ = num_reconciled_ = resumed_at_ = next_step;
}

void EngineLoop::take_in() {
  RequestState* const come = intake_.take();
  is_closing_ ? set_aside(come) : add_submitted(come);
  is_told_ |= intake_.take_change_announcement();
  const bool ends = intake_.take_end_announcement();
  const bool is_late = next_deadline_ns_ != INT64_MAX && now_ns() >= next_deadline_ns_;
  if (aside_ != nullptr && (come != nullptr || ends || is_late)) add_due_aside();
  if (ends) end_requested();
  if (is_late) end_late();
}

// The step that runs may end sooner than others of its kind did.
void EngineLoop::await_arrivals() {
  constexpr std::chrono::microseconds kGlance{100};
  bool& awaited = awaited_[num_submitted_ % kStepRingSize];
  awaited = false;
  if (!awaits_arrivals_ || begun_ns_ == 0 || num_submitted_ - num_reconciled_ != 1) return;
  const uint64_t running = num_reconciled_;
  const int64_t until = plan_timer_.plan_at(
      shapes_[running % kStepRingSize], plans_[running % kStepRingSize].num_new_ids > 0, begun_ns_);
  while (now_ns() < until && !intake_.stopping() && !is_published(running)) {
    awaited = true;
    std::this_thread::sleep_for(kGlance);
  }
}

// The step before `step` took so long.
void EngineLoop::note_awaited(uint64_t step, int64_t ns_before) {
  if (!awaits_arrivals_) return;
  const size_t before = (step - 1) % kStepRingSize;
  plan_timer_.observe(shapes_[before], plans_[before].num_new_ids > 0, ns_before);
  const size_t at = step % kStepRingSize;
  if (awaited_[at] && follows_[at]) {
    plan_timer_.observe_idle(stamps_[at].begin_ns - stamps_[before].end_ns);
  }
}

}  // namespace foretoken
