#pragma once
#include <foretoken/engine.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <vector>

#include "engine/request/output_collector.h"

namespace foretoken {

// The outputs of several requests, for a caller that waits for all of them.
class GenerateCall {
 public:
  explicit GenerateCall(const std::vector<Request>& requests);

  // For request `index`; called from any thread, valid until take() has returned.
  OutputCallback callback(size_t index);
  // Instead of its callback: every choice of the request gets the error.
  void fail(size_t index, const Status& status);
  // Waits until each request has finished or failed; the outputs in order of requests and choices.
  std::vector<RequestOutput> take();

 private:
  void close_one();

  std::vector<OutputCollector> collectors_;
  std::mutex mutex_;
  std::condition_variable all_done_;
  size_t num_open_;
};

// What Engine::generate_async promises, by way of `submit`.
std::future<std::vector<RequestOutput>> future_outputs(Engine& engine, Request request);

}  // namespace foretoken
