#pragma once
#include <foretoken/limits.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace foretoken {

// Writes how speculation fares, in vLLM's words, ten seconds after the first draft that no line has
// told of yet; an engine that drafts nothing writes nothing. The rates by position are those of the
// drafts that were verified there, which for a fixed number of drafts is vLLM's own figure. One
// thread.
class AcceptanceLog {
 public:
  using Clock = std::chrono::steady_clock;
  using Sink = std::function<void(const std::string& line)>;

  // Without a sink lines go to the log, at info.
  explicit AcceptanceLog(Sink sink = nullptr) : sink_(std::move(sink)) {}

  // Nothing is written from now on.
  void disable() { enabled_ = false; }

  // One verification of `num_drafted` drafts; none counts for nothing.
  void add(int num_drafted, int num_accepted) {
    if (enabled_ && num_drafted > 0) add_at(Clock::now(), num_drafted, num_accepted);
  }
  void add_at(Clock::time_point now, int num_drafted, int num_accepted);
  // When the next line is due, if there is something to tell.
  std::optional<Clock::time_point> due() const;
  void write_when_due(Clock::time_point now);

 private:
  std::string line(double seconds) const;

  Sink sink_;
  bool enabled_ = true;
  Clock::time_point begin_{};
  int64_t num_drafts_ = 0;
  std::array<int64_t, kMaxSpeculativeTokens> drafted_{};
  std::array<int64_t, kMaxSpeculativeTokens> accepted_{};
};

}  // namespace foretoken
