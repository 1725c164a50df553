#pragma once
#include <algorithm>
#include <cstdint>

namespace foretoken {

// Whether looked-up drafts are repaired: only while the masks that it takes need a small share of a
// step, because the queue waits for them instead of computing beside them. Otherwise it rests for
// a number of steps, twice as many each time that it is tried in vain. One thread.
class RepairPace {
 public:
  static constexpr double kShare = 1.0 / 16;

  explicit RepairPace(double share) : share_(share) {}

  bool rests() const { return rest_left_ > 0; }

  // The drafts of a step were repaired in `ns`; steps take `step_ns`, 0: that is not known yet.
  void note_repaired(int64_t ns, double step_ns) {
    const auto elapsed = static_cast<double>(ns);
    mean_ns_ = num_tried_ == 0 ? elapsed : mean_ns_ + (elapsed - mean_ns_) * kNewest;
    if (++num_tried_ < kTrial || step_ns == 0) return;
    if (mean_ns_ <= share_ * step_ns) {
      if (num_tried_ >= kProven) rest_ = kFirstRest;
      return;
    }
    rest_left_ = rest_;
    rest_ = std::min(rest_ * 2, kLongestRest);
    num_tried_ = 0;
  }
  // A step verified drafts.
  void note_step() { rest_left_ -= rest_left_ > 0 ? 1 : 0; }

 private:
  static constexpr double kNewest = 1.0 / 8;
  static constexpr int64_t kTrial = 8;  // steps
  static constexpr int64_t kProven = 128;
  static constexpr int64_t kFirstRest = 256;
  static constexpr int64_t kLongestRest = 1 << 16;

  const double share_;
  double mean_ns_ = 0;
  int64_t num_tried_ = 0;  // since it last rested
  int64_t rest_ = kFirstRest;
  int64_t rest_left_ = 0;
};

}  // namespace foretoken
