#pragma once
#include <array>
#include <cstdint>

#include "engine/step/shape/step_shape.h"

namespace foretoken {

// Until when the plan of the next step may wait while one runs, so that a request that comes
// meanwhile is in that step: until shortly before the one that runs ends, by what steps of its kind
// took. It waits where a request came not long ago, since for those that are here it is too late.
// Engine thread only.
//
// Example: steps of 16 rows take 4.4 ms. 3.1 ms after the begin of such a step the next one is
// planned. Planned at once, it would make who comes in between wait for both.
class PlanTimer {
 public:
  // A request came.
  void note_arrival(int64_t now_ns) { last_arrival_ns_ = now_ns; }
  // Of a step of this shape that began then, by the clock of note_arrival: the time at which to
  // plan the next one; `begin_ns` where nothing is known.
  int64_t plan_at(const StepShape& shape, bool has_prompts, int64_t begin_ns) const;
  // Such a step took so long. Steps come in order.
  void observe(const StepShape& shape, bool has_prompts, int64_t ns);
  // The device had nothing to do for so long behind a step beside which the plan had waited.
  void observe_idle(int64_t ns);

 private:
  static constexpr int64_t kArrivalsNs = 1'000'000'000;  // requests come
  static constexpr int64_t kIdleNs = 100'000;            // it does not go unnoticed
  static constexpr int64_t kFirstMarginNs = 1'000'000;
  static constexpr int64_t kLeastMarginNs = 500'000;
  static constexpr int64_t kMaxMarginNs = 16'000'000;
  static constexpr int kNumSizes = 64;  // of rows, in halves of powers of two
  static constexpr int kNumTimes = 4;   // of a kind, of which the shortest counts

  struct Kind {
    std::array<int64_t, kNumTimes> last_ns{};  // 0: not yet
    int next = 0;
  };
  static size_t kind_of(const StepShape& shape, bool has_prompts);

  std::array<Kind, 2 * kNumSizes> kinds_{};
  int64_t last_arrival_ns_ = 0;
  int64_t margin_ns_ = kFirstMarginNs;
};

}  // namespace foretoken
