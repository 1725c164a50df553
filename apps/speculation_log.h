#pragma once
#include <foretoken/engine.h>

#include <chrono>
#include <string>

namespace foretoken {

// vLLM's log line about what drafting did in `seconds`, from the counts at their start and end. The
// rate by position is that of the drafts made at the position, so that short drafts do not lower
// it. Empty when nothing was drafted.
std::string speculation_log_line(const RequestStats& before, const RequestStats& now,
                                 double seconds);

// Logs that line every ten seconds. One thread.
class SpeculationLog {
 public:
  // `engine` must outlive this.
  explicit SpeculationLog(const Engine& engine);

  // To be called often; logs when it is time.
  void tick();

 private:
  const Engine* engine_;
  bool drafts_ = false;
  RequestStats before_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace foretoken
