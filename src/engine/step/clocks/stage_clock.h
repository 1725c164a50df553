#pragma once
#include <cstdint>
#include <string>

#include "kernels/step_types.h"

namespace foretoken {

// How long a stage before the last one works, and how long it waits for rows. The thread of its
// RankLoop.
class StageClock {
 public:
  // A step that has been published, of which `stamps` tells when its rows came. Steps come in
  // order.
  void note_step(const StepStamps& stamps);

  int64_t num_steps() const { return num_steps_; }
  // From the end of a step to the rows of the next, where they came within kPause: longer gaps are
  // an engine at rest.
  int64_t idle_ns() const { return idle_ns_; }
  // "120 steps, busy 1.20 s, idle 0.30 s (20.0 %)".
  std::string text() const;

  static constexpr int64_t kPause = 500'000'000;

 private:
  int64_t num_steps_ = 0;
  int64_t busy_ns_ = 0;
  int64_t idle_ns_ = 0;
  int64_t last_end_ns_ = 0;
};

}  // namespace foretoken
