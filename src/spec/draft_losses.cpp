#include "spec/draft_losses.h"

#include <algorithm>

namespace foretoken {

void DraftLosses::add(const Step& step) {
  if (step.num_seqs <= 0 || step.plain_ns <= 0) return;
  const LossAccount::Scale scale{step.num_seqs, step.plain_ns};
  owed_ns_ += step.caught_up_ns;
  const int64_t due = (owed_ns_ + kTerm - 1) / kTerm;
  owed_ns_ -= due;
  const auto gain_of = [&](int64_t tokens) { return step.plain_ns * tokens / step.num_seqs; };
  const Step::Drafts &drafts = step.drafts, &predicted = step.predicted;
  const int64_t predicted_cost =
      drafts.num_live > 0 ? step.cost_ns * predicted.num_live / drafts.num_live : 0;
  const int64_t cost = step.cost_ns + due;
  mean_.add(gain_of(drafts.num_accepted - predicted.num_accepted) - (cost - predicted_cost),
            step.step_ns, scale);
  predicted_.add(gain_of(predicted.num_accepted) - predicted_cost, step.step_ns, scale);
  add_to_window(step, gain_of(drafts.num_accepted), cost - predicted_cost);
}

void DraftLosses::add_to_window(const Step& step, int64_t gain_ns, int64_t cost_ns) {
  const LossAccount::Scale scale{step.num_seqs, step.plain_ns};
  if (step.is_open) {
    restart_window();
    typical_.refill();
  } else if (!note_slots(step.by_slot)) {
    typical_.add(gain_ns - cost_ns, step.step_ns, scale);
  } else {
    window_gain_ns_ += gain_ns;
    window_cost_ns_ += cost_ns;
    window_ns_ += step.step_ns;
    ++num_window_steps_;
    const bool is_dear =
        window_cost_ns_ - window_ns_ / LossAccount::kShare > LossAccount::first_ns(scale);
    if (num_window_steps_ == kWindow || (is_dear && num_window_steps_ >= kWindow / 2)) {
      end_window(scale);
    }
  }
}

bool DraftLosses::note_slots(std::span<const uint8_t> by_slot) {
  const size_t count = std::min(by_slot.size(), slots_.size());
  bool any = false;
  for (size_t i = 0; i < count; ++i) {
    if (by_slot[i] == kNothing) continue;
    slots_[i].extra += by_slot[i];
    ++slots_[i].num_steps;
    any = true;
  }
  return any;
}

// Of the sequences that had drafts to hope for in half of its steps, and more.
void DraftLosses::end_window(const LossAccount::Scale& scale) {
  sorted_.clear();
  for (const Slot& slot : slots_) {
    if (slot.num_steps == 0 || slot.num_steps * 2 < num_window_steps_) continue;
    sorted_.push_back(slot.extra * num_window_steps_ / slot.num_steps);
  }
  int64_t gain = window_gain_ns_;
  if (sorted_.size() >= kFewest) {
    const auto middle = sorted_.begin() + static_cast<int64_t>(sorted_.size() / 2);
    std::nth_element(sorted_.begin(), middle, sorted_.end());
    gain = std::min(gain, scale.plain_ns * *middle);
  }
  typical_.add(gain - window_cost_ns_, window_ns_, scale);
  restart_window();
}

void DraftLosses::restart_window() {
  std::fill(slots_.begin(), slots_.end(), Slot());
  window_gain_ns_ = window_cost_ns_ = window_ns_ = 0;
  num_window_steps_ = 0;
}

}  // namespace foretoken
