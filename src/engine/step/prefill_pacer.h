#pragma once
#include <array>
#include <cstdint>

#include "sched/step_plan.h"

namespace foretoken {

// How many rows of long prompts a step may have beside others, so that they take about as long as
// all the rest of the step. It learns from the steps themselves, however long the prompts' prefixes
// are and whatever the device is: every other step has half the rows, and the difference tells what
// a row costs. Alone, long prompts get as many rows as end within half a second, so that nobody who
// comes waits for long. Engine thread only.
class PrefillPacer {
 public:
  // `most`: rows of a step.
  explicit PrefillPacer(int most);

  // For the next plan.
  PacedRows rows() const { return {at_half_ ? half() : full_, alone_}; }
  // That plan was made.
  void planned(const StepPlan& plan);
  // A step of that plan took so long on the device. Steps come in order.
  void observe(const StepPlan& plan, int64_t ns);

 private:
  static constexpr int kLeast = 8;
  static constexpr int kFirst = 64;
  static constexpr int kLeastAlone = 64;
  static constexpr int64_t kLongestAloneNs = 500'000'000;
  static constexpr int kSamples = 3;  // of each kind, of which the fastest counts

  struct Sample {
    int count = 0;
    int rows = 0;
    int64_t ns = 0;
  };

  int half() const { return full_ / 2; }
  void adjust();
  void adjust_alone(int rows, int64_t ns);

  const int max_;
  int full_;
  int alone_;
  bool at_half_ = false;
  std::array<Sample, 2> samples_{};  // steps with half of the rows, and with all
};

}  // namespace foretoken
