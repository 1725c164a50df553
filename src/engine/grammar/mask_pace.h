#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace foretoken {

// Whether the masks of one output take so long that no step may wait for them. An output whose
// grammar was slow for another one starts slow; a slow one is trusted again after a number of fast
// spans that grows eightfold with each relapse, so that no grammar can hold up many steps.
class MaskPace {
 public:
  // Shared by the outputs of a grammar: one of them was slow. Any thread.
  using Habit = std::shared_ptr<std::atomic<bool>>;

  explicit MaskPace(Habit habit)
      : habit_(std::move(habit)),
        is_slow_(habit_ && habit_->load()),
        trial_(is_slow() ? kRelapse : 1) {}

  // Any thread.
  bool is_slow() const { return is_slow_.load(); }

  // One thread at a time.
  void note_slow() {
    if (habit_) habit_->store(true);
    if (!is_slow()) trial_ = std::min(trial_ * kRelapse, kLongestTrial);
    num_fast_ = 0;
    is_slow_.store(true);
  }
  void note_fast() {
    if (is_slow() && ++num_fast_ >= trial_) is_slow_.store(false);
  }

 private:
  static constexpr int64_t kRelapse = 8;
  static constexpr int64_t kLongestTrial = int64_t{1} << 30;

  const Habit habit_;
  std::atomic<bool> is_slow_;
  int64_t trial_;         // fast spans that it takes
  int64_t num_fast_ = 0;  // in a row
};

}  // namespace foretoken
