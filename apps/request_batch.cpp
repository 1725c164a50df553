#include "request_batch.h"

namespace foretoken {

RequestBatch::RequestBatch(Engine& engine, size_t num_requests)
    : engine_(engine),
      start_(std::chrono::steady_clock::now()),
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
    outputs_[i].request_id = request.request_id;
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
  outputs_[i].finished = true;
  outputs_[i].finish_reason = FinishReason::kError;
  outputs_[i].status = status;
  changed_ = true;
}

void RequestBatch::receive(size_t i, const RequestOutput& output) {
  std::lock_guard lock(mutex_);
  RequestOutput& sum = outputs_[i];
  sum.text += output.text;
  sum.token_ids.insert(sum.token_ids.end(), output.token_ids.begin(), output.token_ids.end());
  sum.finished = output.finished;
  sum.finish_reason = output.finish_reason;
  sum.stop_reason = output.stop_reason;
  sum.status = output.status;
  sum.stats = output.stats;
  last_ = std::chrono::steady_clock::now();
  changed_ = true;
  if (output.finished) --num_open_;
  news_.notify_all();
}

bool RequestBatch::look(const std::function<void(const std::vector<RequestOutput>&)>& look) {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, std::chrono::milliseconds(50),
                 [this] { return changed_ || num_open_ == 0; });
  changed_ = false;
  look(outputs_);
  return num_open_ == 0;
}

void RequestBatch::abort_all() {
  std::vector<std::string> open;
  {
    std::lock_guard lock(mutex_);
    for (const RequestOutput& output : outputs_) {
      if (!output.finished && !output.request_id.empty()) open.push_back(output.request_id);
    }
  }
  for (const std::string& id : open) engine_.abort(id);
}

double RequestBatch::seconds() const {
  std::lock_guard lock(mutex_);
  return std::chrono::duration<double>(last_ - start_).count();
}

}  // namespace foretoken
