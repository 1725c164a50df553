#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "engine/request/request_state.h"
#include "engine/step/engine_loop.h"

// How the engine thread comes to rest, and goes on.

namespace foretoken {
namespace {

// A thread that rests looks so often whether the other ranks have ended.
constexpr int64_t kNsBetweenLooks = 500'000'000;

using Next = group::AgreedShape::Next;

}  // namespace

void EngineLoop::end_all() {
  add_submitted(intake_.take());
  for (size_t i = live_.size(); i-- > 0;) end_sequence(*live_[i], FinishReason::kAbort);
  while (num_reconciled_ < num_submitted_) wait_and_reconcile();
}

bool EngineLoop::waits_for_requests() const {
  return rest_gate_.is_wanted() && !rest_gate_.ends_requests() && !intake_.stopping() &&
         !failed_.load();
}

void EngineLoop::finish_all() {
  add_submitted(intake_.take());
  is_closing_ = true;
  while (waits_for_requests() && !live_.empty()) {
    if (!serve() && waits_for_requests() && !live_.empty()) intake_.wait();
  }
  is_closing_ = false;
  last_aside_ = nullptr;
  add_submitted(std::exchange(aside_, nullptr));
}

// Taken from the intake, which would otherwise have news for ever.
void EngineLoop::set_aside(RequestState* request) {
  if (request == nullptr) return;
  (aside_ == nullptr ? aside_ : last_aside_->next_submitted) = request;
  for (; request != nullptr; request = request->next_submitted) {
    last_aside_ = request;
    next_deadline_ns_ =
        std::min({next_deadline_ns_, request->queue_deadline_ns, request->deadline_ns});
  }
}

// Those that are to end, or are late, end while the others wait.
void EngineLoop::add_due_aside() {
  RequestState** link = &aside_;
  last_aside_ = nullptr;
  while (*link != nullptr) {
    RequestState* const request = *link;
    const int64_t due = std::min(request->queue_deadline_ns, request->deadline_ns);
    if (!request->shall_end() && now_ns() < due) {
      last_aside_ = request;
      link = &request->next_submitted;
      continue;
    }
    *link = std::exchange(request->next_submitted, nullptr);
    add_submitted(request);
  }
}

// An empty step of this engine, if the others run one.
void EngineLoop::run_empty_step() {
  StepPlan& plan = plans_[num_submitted_ % kStepRingSize];
  plan.clear();
  if (agree(plan, false)) submit(plan);
  while (num_reconciled_ < num_submitted_) wait_and_reconcile();
}

// Engines that share layers rest together: the others may still want this one's part of their
// steps. False: it is not to rest after all.
bool EngineLoop::rest_with_others() {
  if (agreement_ == nullptr) return rest_gate_.is_wanted();
  rest_wish_ = RestWish::kWants;
  while (rest_gate_.is_wanted() && !intake_.stopping() && !failed_.load()) {
    run_empty_step();
    if (agreed_.next == Next::kRest) break;
    if (agreed_.next == Next::kSleep) intake_.wait();
    take_in();
  }
  rest_wish_ = RestWish::kNone;
  return rest_gate_.is_wanted();
}

// One that is awake has nothing run before all are.
void EngineLoop::rise_with_others() {
  while (agreement_ != nullptr && !rest_gate_.is_wanted() && !intake_.stopping() &&
         !failed_.load()) {
    run_empty_step();
    if (agreed_.next != Next::kRest) return;
    intake_.wait();
    take_in();
    note_occupancy();
  }
}

// Requests wait, and may be ended or be too late; others that share layers hear that it rests.
void EngineLoop::stay_at_rest() {
  rest_wish_ = RestWish::kRests;
  const bool has_others = feed_ != nullptr || agreement_ != nullptr;
  for (;;) {
    take_in();
    note_occupancy();
    if (!rest_gate_.is_resting() || intake_.stopping()) break;
    if (has_others && !failed_.load() && ranks_ != nullptr && ranks_->have_ended()) {
      fail_everything(internal_error("the ranks of this engine have ended while it slept"));
    }
    const bool is_told = std::exchange(is_told_, false);
    if (is_told && agreement_ != nullptr && !failed_.load()) run_empty_step();
    const int64_t look = has_others ? now_ns() + kNsBetweenLooks : INT64_MAX;
    intake_.wait_until(std::min(next_deadline_ns_, look));
  }
  rest_wish_ = RestWish::kNone;
}

// Where engines that share layers rest still, this one has nothing in flight and runs nothing.
bool EngineLoop::come_to_rest() {
  if (agreed_.next == Next::kRest) return true;
  finish_all();
  if (rest_gate_.is_wanted() && rest_gate_.ends_requests()) end_all();
  return rest_with_others() && !intake_.stopping();
}

void EngineLoop::rest_here() {
  if (come_to_rest()) {
    if (watch_.rest && !failed_.load()) watch_.rest();
    scheduler_.drop_cached();
    if (rest_work_ && !failed_.load()) rest_work_();
    rest_gate_.begin_rest();
    stay_at_rest();
  }
  rise_with_others();
}

}  // namespace foretoken
