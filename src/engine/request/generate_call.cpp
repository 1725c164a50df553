#include "engine/request/generate_call.h"

#include <memory>
#include <utility>

namespace foretoken {

GenerateCall::GenerateCall(const std::vector<Request>& requests)
    : collectors_(requests.begin(), requests.end()), num_open_(requests.size()) {}

OutputCallback GenerateCall::callback(size_t index) {
  return [this, index](const RequestOutput& output) {
    collectors_[index].add(output);
    if (output.request_finished) close_one();
  };
}

void GenerateCall::fail(size_t index, const Status& status) {
  collectors_[index].fail(status);
  close_one();
}

// Under the lock to the end: whoever waits destroys this object as soon as it gets the lock.
void GenerateCall::close_one() {
  std::lock_guard lock(mutex_);
  if (--num_open_ == 0) all_done_.notify_all();
}

std::vector<RequestOutput> GenerateCall::take() {
  std::unique_lock lock(mutex_);
  all_done_.wait(lock, [&] { return num_open_ == 0; });
  std::vector<RequestOutput> outputs;
  for (OutputCollector& collector : collectors_) {
    for (RequestOutput& output : collector.take()) outputs.push_back(std::move(output));
  }
  return outputs;
}

std::future<std::vector<RequestOutput>> future_outputs(Engine& engine, Request request) {
  auto promise = std::make_shared<std::promise<std::vector<RequestOutput>>>();
  auto collector = std::make_shared<OutputCollector>(request);
  std::future<std::vector<RequestOutput>> future = promise->get_future();
  const Status status = engine.submit(
      std::move(request),
      [promise, collector](const RequestOutput& output) {
        collector->add(output);
        if (output.request_finished) promise->set_value(collector->take());
      },
      nullptr);
  if (!status.ok()) {
    collector->fail(status);
    promise->set_value(collector->take());
  }
  return future;
}

}  // namespace foretoken
