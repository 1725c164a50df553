#pragma once
#include <foretoken/engine.h>

#include <chrono>
#include <string>
#include <vector>

namespace foretoken {

// Says where the time of a start went.
class StartClock {
 public:
  using Clock = std::chrono::steady_clock;
  explicit StartClock(Clock::time_point begin = Clock::now()) : begin_(begin) {}

  // What happened since the phase before, or since the clock was made, is the phase `name`.
  void end_phase(const char* name, Clock::time_point now = Clock::now());

  const std::vector<StartPhase>& phases() const { return phases_; }
  double seconds() const;
  // "1.20 s: weights 0.90, memory 0.30"; phases under 10 ms are left out.
  std::string text() const;

 private:
  Clock::time_point begin_;
  std::vector<StartPhase> phases_;
};

}  // namespace foretoken
