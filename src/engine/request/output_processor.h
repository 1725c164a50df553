#pragma once
#include <foretoken/engine.h>

#include <array>
#include <functional>
#include <mutex>
#include <thread>

#include "base/trace.h"
#include "engine/request/acceptance_log.h"
#include "engine/request/intake.h"
#include "engine/request/output_ring.h"
#include "engine/request/request_state.h"

namespace foretoken {

// The output thread: turns committed ids into text, looks for stop strings, calls the users'
// callbacks, counts, and destroys records that the engine thread has released.
class OutputProcessor {
 public:
  struct Hooks {
    // Called before a request's last callback: nobody may find the group any more, and its id is
    // free again.
    std::function<void(const RequestGroup&)> forget;
    // The text of a device error.
    std::function<Status()> device_error;
  };

  // `trace`: where to note when it is busy, or null.
  OutputProcessor(OutputRing& ring, Intake& intake, Hooks hooks, TraceLane* trace = nullptr);
  ~OutputProcessor();

  // No lines about speculation in the log. Before the start.
  void disable_log_stats() { acceptance_log_.disable(); }

  void start();
  // Joins once the ring is closed and empty.
  void join();

  // Whether the caller runs inside a callback.
  bool on_output_thread() const { return std::this_thread::get_id() == thread_id_.load(); }

  // Sums over finished choices and over the output of unfinished ones. Any thread.
  RequestStats totals() const;
  // The same of the requests that one drafter serves.
  RequestStats totals_of(int drafter) const;
  int64_t num_finished() const;  // requests

 private:
  void main();
  void handle_and_trace(const OutputEvent& event);
  void handle(const OutputEvent& event);
  bool is_complete(const RequestState& request, const OutputEvent& event);
  void count(RequestState& request, const OutputEvent& event);
  void append_ids(RequestState& request, const OutputEvent& event);
  bool append_id(RequestState& request, int32_t id, bool is_stop_id);
  bool append_text(RequestState& request, std::string_view piece);
  void drop_rest(RequestState& request, const OutputEvent& event, int num_kept);
  void end_here(RequestState& request, FinishReason reason);
  void finish(RequestState& request, FinishReason reason);
  void finish_text(RequestState& request, FinishReason& reason);
  void count_prompt(RequestState& request);
  void count_finished(RequestState& request);
  // Changes the sums that a request counts in; `change` gets each of them.
  template <class Change>
  void change_totals(const RequestState& request, int drafter, const Change& change);
  void emit(RequestState& request);
  bool call_back(RequestState& request);

  OutputRing& ring_;
  Intake& intake_;
  const Hooks hooks_;
  TraceLane* const trace_;
  mutable std::mutex totals_mutex_;
  RequestStats totals_;
  std::array<RequestStats, kMaxDrafters> drafter_totals_;
  AcceptanceLog acceptance_log_;  // output thread
  int64_t num_finished_ = 0;
  std::atomic<std::thread::id> thread_id_{};
  std::thread thread_;
};

}  // namespace foretoken
