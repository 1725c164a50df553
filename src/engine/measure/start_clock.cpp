#include "engine/measure/start_clock.h"

#include <spdlog/fmt/fmt.h>

namespace foretoken {

void StartClock::end_phase(const char* name, Clock::time_point now) {
  phases_.push_back({name, std::chrono::duration<double>(now - begin_).count()});
  begin_ = now;
}

double StartClock::seconds() const {
  double sum = 0;
  for (const StartPhase& phase : phases_) sum += phase.seconds;
  return sum;
}

std::string StartClock::text() const {
  constexpr double kLeast = 0.01;
  std::string text = fmt::format("{:.2f} s", seconds());
  const char* separator = ": ";
  for (const StartPhase& phase : phases_) {
    if (phase.seconds < kLeast) continue;
    text += fmt::format("{}{} {:.2f}", separator, phase.name, phase.seconds);
    separator = ", ";
  }
  return text;
}

}  // namespace foretoken
