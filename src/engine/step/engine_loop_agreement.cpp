#include <semaphore>

#include "engine/step/agreed_step.h"
#include "engine/step/engine_loop.h"

// The engine thread's part in the steps of engines that share layers with this one.

namespace foretoken {

// Engines leave together: the others may still want this one's part of their steps, and wake it for
// that.
void EngineLoop::run_for_others() {
  std::counting_semaphore<> news(0);
  agreement_->set_waker([&news] { news.release(); });
  using Next = group::AgreedShape::Next;
  while (!failed_.load() && agreed_.next != Next::kEnd) {
    run_empty_step();
    if (agreed_.next == Next::kSleep || agreed_.next == Next::kRest) news.acquire();
  }
  agreement_->set_waker(nullptr);
}

// Sets the step's shape and says whether it runs, on every engine that shares layers with this one.
// Without a plan of its own the engine's step is empty.
bool EngineLoop::agree(StepPlan& plan, bool planned) {
  const uint64_t step = num_submitted_;
  if (!planned) {
    plan.clear();
    plan.step = step;
  }
  const StepShape own = runner_.shape_of(plan);
  group::StepShapeWish wish = planned ? wish_of(own) : group::StepShapeWish{};
  wish.has_work = num_submitted_ > num_reconciled_;
  wish.wants_end = intake_.stopping();
  wish.wants_rest = rest_wish_ == RestWish::kWants;
  wish.rests = rest_wish_ == RestWish::kRests;
  const Result<group::AgreedShape> agreed = agreement_->next(wish, step);
  if (!agreed.ok()) return feeds(agreed.status());
  agreed_ = agreed.value();
  if (agreed_.next != group::AgreedShape::Next::kRun) return false;
  shapes_[step % kStepRingSize] = with_passes_of(own, agreed_.shape);
  if (!planned) policy_.planned(step, {});
  return true;
}

}  // namespace foretoken
