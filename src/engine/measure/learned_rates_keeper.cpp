#include "engine/measure/learned_rates_keeper.h"

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread_role.h"
#include "spec/learned_rates_file.h"

namespace foretoken {
namespace {

// Between two writes. Requests that come one by one end in a rest each.
constexpr std::chrono::milliseconds kLeastGap{1000};

}  // namespace

LearnedRatesKeeper::LearnedRatesKeeper(const Parts& parts, LearnedRatesCache cache,
                                       std::vector<LearnedDrafter> drafters,
                                       std::chrono::milliseconds period)
    : parts_(parts),
      cache_(std::move(cache)),
      drafters_(std::move(drafters)),
      period_ns_(period.count() * 1'000'000),
      pinned_(parts.device, MemoryKind::kPinned),
      copy_(std::make_unique<Copy>()) {}

LearnedRatesKeeper::~LearnedRatesKeeper() { stop(); }

Result<std::unique_ptr<LearnedRatesKeeper>> LearnedRatesKeeper::start(
    const Parts& parts, LearnedRatesCache cache, std::vector<LearnedDrafter> drafters,
    std::string step_times, std::chrono::milliseconds period) {
  std::unique_ptr<LearnedRatesKeeper> keeper(
      new LearnedRatesKeeper(parts, std::move(cache), std::move(drafters), period));
  FT_ASSIGN_OR_RETURN(keeper->priors_,
                      keeper->pinned_.take_array<DraftRates>(kMaxDrafters, "draft rates"));
  keeper->step_times_ = std::move(step_times);
  keeper->next_ns_ = now_ns() + keeper->period_ns_;
  keeper->thread_ = std::thread([own = keeper.get()] { own->main(); });
  return keeper;
}

// In the order of the device's work, so that the step submitted next tells that it is done.
void LearnedRatesKeeper::copy_priors() {
  parts_.queue.copy(priors_, parts_.priors, kMaxDrafters * sizeof(DraftRates));
}

void LearnedRatesKeeper::note_step(uint64_t num_submitted, uint64_t num_reconciled) {
  has_new_steps_ = true;
  if (is_copying_) {
    if (num_reconciled > copied_before_) hand_over();
    return;
  }
  const int64_t now = now_ns();
  if (now < next_ns_) return;
  next_ns_ = now + period_ns_;
  copy_priors();
  is_copying_ = true;
  copied_before_ = num_submitted;
}

void LearnedRatesKeeper::rest() {
  if (!has_new_steps_) return;
  copy_priors();
  if (parts_.queue.drain().ok()) hand_over();
}

void LearnedRatesKeeper::hand_over() {
  is_copying_ = has_new_steps_ = false;
  {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < drafters_.size(); ++i) {
      const auto drafter = static_cast<int>(i);
      copy_->own[i] = parts_.policy.learned(drafter, LengthController::Kind::kOwn);
      copy_->in_lists[i] = parts_.policy.learned(drafter, LengthController::Kind::kListed);
      copy_->priors[i] = priors_[i];
    }
    copy_->steps = parts_.policy.feedback();
    has_news_ = true;
  }
  wakes_.notify_one();
}

// What was handed over before is of the other table.
void LearnedRatesKeeper::set_step_times(std::string step_times) {
  std::lock_guard lock(mutex_);
  step_times_ = std::move(step_times);
  has_news_ = false;
}

std::optional<LearnedRates> LearnedRatesKeeper::learned() const {
  LearnedRates learned;
  learned.drafters = drafters_;
  bool any = false;
  for (size_t i = 0; i < drafters_.size(); ++i) {
    LearnedDrafter& drafter = learned.drafters[i];
    drafter.policy = copy_->own[i];
    drafter.in_lists = copy_->in_lists[i];
    drafter.prior = copy_->priors[i];
    any = any || drafter.prior.num_rated > 0 || drafter.policy.num_ever > 0;
  }
  if (!any) return std::nullopt;
  learned.step_times = step_times_;
  if (!step_times_.empty()) learned.steps = copy_->steps.known();
  return learned;
}

// What cannot be written is told at the end.
void LearnedRatesKeeper::write(LearnedRates learned) {
  std::string text = learned_rates_to_json(learned);
  if (text == last_written_) return;
  const Status status = cache_.keep_quietly(std::move(learned));
  if (!status.ok()) FT_LOG(debug, "acceptance rates: not kept: {}", status.message());
  last_written_ = std::move(text);
}

void LearnedRatesKeeper::main() {
  set_thread_role(ThreadRole::kOther, "ft-learned");
  std::unique_lock lock(mutex_);
  while (true) {
    wakes_.wait(lock, [this] { return stops_ || has_news_; });
    if (stops_) return;
    has_news_ = false;
    if (std::optional<LearnedRates> known = learned()) {
      lock.unlock();
      write(*std::move(known));
      lock.lock();
    }
    if (wakes_.wait_for(lock, kLeastGap, [this] { return stops_; })) return;
  }
}

void LearnedRatesKeeper::stop() {
  {
    std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wakes_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void LearnedRatesKeeper::finish() {
  stop();
  copy_priors();
  if (!parts_.queue.drain().ok()) return;
  hand_over();
  if (std::optional<LearnedRates> known = learned()) cache_.keep(*std::move(known));
}

}  // namespace foretoken
