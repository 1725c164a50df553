#pragma once
#include <algorithm>
#include <cstdint>

namespace foretoken {

// When numbers of drafts that a rough table calls too dear are tried all the same: for a few steps,
// as soon as 1/200 of the time that went by pays for what they would lose. A trial that lost less
// than was thought gives back the rest. Example: steps take 2 ms and a trial of four would lose 3
// ms in each; every 1,200 steps one may begin, the first one at once.
class DraftTrials {
 public:
  // Whether steps that would lose `loss_ns` each may begin, those of `drafter` with `limit` drafts.
  bool begin(int drafter, int limit, int64_t loss_ns, int64_t plain_ns) {
    if (num_left_ > 0 || num_running_ > 0) return false;
    if (!has_begun_) saved_ns_ = std::max(saved_ns_, kFirstSteps * plain_ns);
    if (loss_ns * kSteps > saved_ns_) return false;
    has_begun_ = true;
    drafter_ = drafter;
    limit_ = limit;
    num_left_ = kSteps;
    return true;
  }
  // The limit of the trial that goes on; 0: there is none.
  int limit_of(int drafter) const { return num_left_ > 0 && drafter_ == drafter ? limit_ : 0; }
  // A step was planned. Whether it is one of a trial.
  bool planned() {
    if (num_left_ == 0) return false;
    --num_left_;
    ++num_running_;
    return true;
  }
  // A step took so long, where one without drafts takes `plain_ns`.
  void step_ended(bool is_trial, int64_t ns, int64_t plain_ns) {
    saved_ns_ = std::min(saved_ns_ + ns / kShare, kMaxSteps * plain_ns);
    if (!is_trial) return;
    num_running_ = std::max(num_running_ - 1, 0);
    saved_ns_ -= std::max<int64_t>(ns - plain_ns, 0);
  }

 private:
  // Of the time, for trials.
  static constexpr int64_t kShare = 200;
  // Of a trial: two tell (CostFeedback), behind one that catches up and drafts alone.
  static constexpr int kSteps = 4;
  // What the first trial may lose, in steps. Fewer, and short texts end before it.
  static constexpr int64_t kFirstSteps = 16;
  // What is saved up at most. More, and a long rest is followed by trial after trial.
  static constexpr int64_t kMaxSteps = 128;

  int64_t saved_ns_ = 0;
  bool has_begun_ = false;
  int drafter_ = 0;
  int limit_ = 0;
  int num_left_ = 0;
  int num_running_ = 0;
};

}  // namespace foretoken
