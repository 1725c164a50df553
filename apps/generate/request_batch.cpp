#include "apps/generate/request_batch.h"

#include <algorithm>

namespace foretoken {

RequestBatch::RequestBatch(Engine& engine, size_t num_requests)
    : engine_(engine),
      start_(std::chrono::steady_clock::now()),
      names_(num_requests),
      outputs_(num_requests),
      num_open_(0),
      last_(start_) {}

RequestBatch::~RequestBatch() {
  abort_all();
  std::unique_lock lock(mutex_);
  news_.wait(lock, [this] { return num_open_ == 0; });
}

void RequestBatch::submit(size_t i, Request request) {
  {
    std::lock_guard lock(mutex_);
    names_[i] = request.request_id;
    outputs_[i] = OutputSum(std::max(request.sampling.n, 1));
    ++num_open_;
  }
  const Status status = engine_.submit(
      std::move(request), [this, i](const RequestOutput& output) { receive(i, output); });
  if (status.ok()) return;
  refuse(i, status);
  std::lock_guard lock(mutex_);
  --num_open_;
}

void RequestBatch::refuse(size_t i, const Status& status) {
  std::lock_guard lock(mutex_);
  outputs_[i].fail(status);
  changed_ = true;
}

void RequestBatch::receive(size_t i, const RequestOutput& output) {
  std::lock_guard lock(mutex_);
  OutputSum& sum = outputs_[i];
  if (sum.finished()) return;
  sum.add(output);
  last_ = std::chrono::steady_clock::now();
  changed_ = true;
  if (sum.finished()) --num_open_;
  if (!wake_at_ || num_open_ <= *wake_at_) news_.notify_all();
}

bool RequestBatch::look(const std::function<void(const std::vector<OutputSum>&)>& look) {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, std::chrono::milliseconds(50),
                 [this] { return changed_ || num_open_ == 0; });
  changed_ = false;
  look(outputs_);
  return num_open_ == 0;
}

bool RequestBatch::wait_until_open(size_t most) {
  std::unique_lock lock(mutex_);
  wake_at_ = most;
  news_.wait_for(lock, std::chrono::milliseconds(50), [&] { return num_open_ <= most; });
  wake_at_.reset();
  return num_open_ <= most;
}

size_t RequestBatch::num_open() const {
  std::lock_guard lock(mutex_);
  return num_open_;
}

void RequestBatch::abort_all() {
  std::vector<std::string> open;
  {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!outputs_[i].finished() && !names_[i].empty()) open.push_back(names_[i]);
    }
  }
  for (const std::string& id : open) engine_.abort(id);
}

double RequestBatch::seconds() const {
  std::lock_guard lock(mutex_);
  return std::chrono::duration<double>(last_ - start_).count();
}

}  // namespace foretoken
