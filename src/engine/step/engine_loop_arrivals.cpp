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

void EngineLoop::end_all() {
  add_submitted(intake_.take());
  for (size_t i = live_.size(); i-- > 0;) end_sequence(*live_[i], FinishReason::kAbort);
  while (num_reconciled_ < num_submitted_) wait_and_reconcile();
}

void EngineLoop::finish_all() {
  add_submitted(intake_.take());
  is_closing_ = true;
  while (!intake_.stopping() && !failed_.load() && !live_.empty()) {
    if (!serve() && !intake_.stopping() && !live_.empty()) intake_.wait();
  }
  is_closing_ = false;
}

// Requests that come meanwhile may end, too.
void EngineLoop::rest_here() {
  rest_gate_.ends_requests() ? end_all() : finish_all();
  if (intake_.stopping()) return;
  if (watch_.rest && !failed_.load()) watch_.rest();
  scheduler_.drop_cached();
  if (rest_work_ && !failed_.load()) rest_work_();
  rest_gate_.begin_rest();
  for (;;) {
    take_in();
    note_occupancy();
    if (!rest_gate_.is_resting() || intake_.stopping()) return;
    intake_.wait_until(next_deadline_ns_);
  }
}

void EngineLoop::end_turn(uint64_t next_step) {
  num_submitted_ = num_finished_ = num_reconciled_ = resumed_at_ = next_step;
}

void EngineLoop::take_in() {
  if (!is_closing_) add_submitted(intake_.take());
  intake_.take_change_announcement();
  if (intake_.take_end_announcement()) end_requested();
  if (next_deadline_ns_ != INT64_MAX && now_ns() >= next_deadline_ns_) end_late();
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
