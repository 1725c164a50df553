#pragma once
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "device/arena.h"
#include "engine/measure/learned_rates_cache.h"
#include "spec/length_controller.h"

namespace foretoken {

// Keeps what an engine learns of its drafters and steps while it runs, so that a process that is
// killed loses the last seconds of it at most. The engine thread hands a copy over, every `period`
// under load and whenever it rests, and a thread of the keeper's own writes the file.
class LearnedRatesKeeper {
 public:
  // They outlive the keeper.
  struct Parts {
    Device& device;
    Queue& queue;
    const DraftRates* priors;  // [kMaxDrafters] on the device
    const LengthController& policy;
  };
  // `drafters`: their names and numbers of drafts. `step_times`: hash_of_times of the table that
  // steps correct; empty: what they take is not kept.
  static Result<std::unique_ptr<LearnedRatesKeeper>> start(
      const Parts& parts, LearnedRatesCache cache, std::vector<LearnedDrafter> drafters,
      std::string step_times, std::chrono::milliseconds period = std::chrono::seconds(5));
  ~LearnedRatesKeeper();

  // Engine thread, after each step that was reconciled: how many were submitted and reconciled so
  // far. Allocates nothing.
  void note_step(uint64_t num_submitted, uint64_t num_reconciled);
  // Engine thread, with no step in flight. Waits for the device's last drafts; allocates nothing.
  void rest();
  // Engine thread: steps correct another table from here on.
  void set_step_times(std::string step_times);
  // The end, once nothing runs any more: writes what is known then, and the log says where.
  void finish();

 private:
  struct Copy {
    std::array<PolicyState, kMaxDrafters> own;
    std::array<PolicyState, kMaxDrafters> in_lists;
    std::array<DraftRates, kMaxDrafters> priors;
    CostFeedback steps;
  };
  LearnedRatesKeeper(const Parts& parts, LearnedRatesCache cache,
                     std::vector<LearnedDrafter> drafters, std::chrono::milliseconds period);
  void main();
  void stop();
  void copy_priors();
  void hand_over();
  // None where nothing was drafted yet. With the mutex held.
  std::optional<LearnedRates> learned() const;
  void write(LearnedRates learned);

  const Parts parts_;
  const LearnedRatesCache cache_;
  const std::vector<LearnedDrafter> drafters_;
  const int64_t period_ns_;
  Arena pinned_;
  DraftRates* priors_ = nullptr;  // [kMaxDrafters] pinned
  // The engine thread's.
  int64_t next_ns_ = 0;
  bool is_copying_ = false;
  uint64_t copied_before_ = 0;  // the step that the device runs after the copy
  bool has_new_steps_ = false;
  // The writing thread's.
  std::string last_written_;

  std::mutex mutex_;
  std::condition_variable wakes_;
  std::unique_ptr<Copy> copy_;  // these four under the mutex
  std::string step_times_;
  bool has_news_ = false;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace foretoken
