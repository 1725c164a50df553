#pragma once
#include <foretoken/request.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "kernels/step_types.h"

namespace foretoken {

struct RequestState;

// What one step did to one request.
struct OutputEvent {
  RequestState* request = nullptr;
  int32_t ids[kMaxDraftTokens + 1] = {};
  int32_t num_ids = 0;
  int32_t num_drafted = 0;
  int32_t num_accepted = 0;
  int32_t num_by_branch = 0;       // of those, SpanResult::num_by_branch
  int32_t drafter = 0;             // that made them
  bool from_prediction = false;    // the drafts are
  int32_t num_cached_tokens = -1;  // >= 0: at the first admission
  int32_t num_preemptions = 0;
  FinishReason finish = FinishReason::kNone;
  bool released = false;  // the engine thread no longer knows the record
};

// A bounded ring from the engine thread to the output thread; neither side allocates. When the
// output thread falls behind by the whole ring, the engine thread waits for it.
class OutputRing {
 public:
  explicit OutputRing(size_t capacity) : events_(capacity) {}

  void push(const OutputEvent& event);  // engine thread
  // Output thread: false when the ring is closed and empty.
  bool pop(OutputEvent& event) { return pop_until(event, std::nullopt) == Popped::kEvent; }
  enum class Popped : uint8_t { kEvent, kClosed, kLate };
  // The same, but kLate when nothing came before `deadline`.
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;
  Popped pop_until(OutputEvent& event, const Deadline& deadline);
  void close();  // engine thread, after its last push

 private:
  std::vector<OutputEvent> events_;
  std::atomic<uint64_t> head_{0};
  std::atomic<uint64_t> tail_{0};
  std::atomic<bool> closed_{false};
  std::atomic<bool> parked_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace foretoken
