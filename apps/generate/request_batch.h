#pragma once
#include <foretoken/engine.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "serve/answer/output_sum.h"

namespace foretoken {

// Requests that run together and what came of them so far. The engine must outlive it; the
// destructor aborts and waits for what still runs. Used by one thread beside the engine's.
class RequestBatch {
 public:
  RequestBatch(Engine& engine, size_t num_requests);
  ~RequestBatch();
  RequestBatch(const RequestBatch&) = delete;
  RequestBatch& operator=(const RequestBatch&) = delete;

  // Queues the i-th request, which must have an id. A refusal becomes its output.
  void submit(size_t i, Request request);
  // Makes an error the i-th output.
  void refuse(size_t i, const Status& status);

  // Waits until an output changed, but at most 50 ms, and calls `look` with all outputs (text and
  // tokens so far), during which they stand still. True when all are finished.
  bool look(const std::function<void(const std::vector<OutputSum>&)>& look);
  // Waits until at most `most` of the queued ones are unfinished, but at most 50 ms, without waking
  // up for every token. True when so.
  bool wait_until_open(size_t most);
  // Queued and unfinished.
  size_t num_open() const;

  void abort_all();

  // From construction to the last output.
  double seconds() const;

 private:
  void receive(size_t i, const RequestOutput& output);

  Engine& engine_;
  const std::chrono::steady_clock::time_point start_;
  mutable std::mutex mutex_;
  std::condition_variable news_;
  bool changed_ = false;
  std::optional<size_t> wake_at_;   // so few open ones are news; none: every output is
  std::vector<std::string> names_;  // of submitted requests
  std::vector<OutputSum> outputs_;
  size_t num_open_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace foretoken
