#include "serve/flow/fake_exchange.h"

#include <utility>

#include "support/gate.h"

namespace foretoken::test {

FakeExchange::FakeExchange() : thread_([loop = loop_] { loop->run(); }) {}

std::shared_ptr<FakeExchange> FakeExchange::make(std::string body, std::string path) {
  std::shared_ptr<FakeExchange> made(new FakeExchange());
  made->request_.method = "POST";
  made->request_.path = std::move(path);
  made->request_.body = std::move(body);
  made->request_.id = "test-id";
  made->request_.received = std::chrono::steady_clock::now();
  return made;
}

FakeExchange::~FakeExchange() {
  {
    std::lock_guard lock(loop_->mutex);
    loop_->stopping = true;
  }
  loop_->news.notify_all();
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void FakeExchange::Loop::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    news.wait(lock, [this] { return stopping || !work.empty(); });
    if (stopping) return;
    std::vector<std::function<void()>> taken = std::exchange(work, {});
    lock.unlock();
    for (auto& piece : taken) piece();
    taken.clear();
    lock.lock();
  }
}

void FakeExchange::Loop::post(std::function<void()> piece) {
  {
    std::lock_guard lock(mutex);
    work.push_back(std::move(piece));
  }
  news.notify_all();
}

void FakeExchange::respond(int status, const std::string&, std::string body,
                           http::Headers headers) {
  {
    std::lock_guard lock(mutex_);
    if (ended_ || gone_) return;
    status_ = status;
    body_ = std::move(body);
    headers_ = std::move(headers);
    ended_ = true;
  }
  news_.notify_all();
}

void FakeExchange::begin(int status, const std::string&, http::Headers headers) {
  std::lock_guard lock(mutex_);
  status_ = status;
  headers_ = std::move(headers);
}

void FakeExchange::write(std::string bytes) {
  {
    std::lock_guard lock(mutex_);
    if (ended_ || gone_) return;
    body_ += bytes;
    ++num_writes_;
    if (stalled_) num_unsent_ += bytes.size();
  }
  news_.notify_all();
}

void FakeExchange::end() {
  {
    std::lock_guard lock(mutex_);
    if (!gone_) ended_ = true;
  }
  news_.notify_all();
}

size_t FakeExchange::num_queued_bytes() const {
  std::lock_guard lock(mutex_);
  return num_unsent_;
}

void FakeExchange::post(std::function<void()> work) { loop_->post(std::move(work)); }

void FakeExchange::when_sent(std::function<void()> work) {
  std::lock_guard lock(mutex_);
  if (num_unsent_ > 0) {
    on_sent_.push_back(std::move(work));
  } else {
    loop_->post(std::move(work));
  }
}

void FakeExchange::when_gone(std::function<void()> work) {
  std::lock_guard lock(mutex_);
  if (gone_) {
    loop_->post(std::move(work));
  } else {
    on_gone_.push_back(std::move(work));
  }
}

bool FakeExchange::gone() const {
  std::lock_guard lock(mutex_);
  return gone_;
}

void FakeExchange::stall() {
  std::lock_guard lock(mutex_);
  stalled_ = true;
}

void FakeExchange::resume() {
  std::lock_guard lock(mutex_);
  stalled_ = false;
  num_unsent_ = 0;
  for (auto& work : std::exchange(on_sent_, {})) loop_->post(std::move(work));
  news_.notify_all();
}

void FakeExchange::leave() {
  std::lock_guard lock(mutex_);
  gone_ = true;
  for (auto& work : std::exchange(on_gone_, {})) loop_->post(std::move(work));
  for (auto& work : std::exchange(on_sent_, {})) loop_->post(std::move(work));
  news_.notify_all();
}

bool FakeExchange::wait() {
  std::unique_lock lock(mutex_);
  return news_.wait_for(lock, kPatience, [this] { return ended_; });
}

bool FakeExchange::wait_for_bytes(size_t count) {
  std::unique_lock lock(mutex_);
  return news_.wait_for(lock, kPatience, [&] { return body_.size() >= count; });
}

int FakeExchange::status() const {
  std::lock_guard lock(mutex_);
  return status_;
}

std::string FakeExchange::body() const {
  std::lock_guard lock(mutex_);
  return body_;
}

std::string FakeExchange::header(const std::string& name) const {
  std::lock_guard lock(mutex_);
  for (const auto& [key, value] : headers_) {
    if (key == name) return value;
  }
  return {};
}

size_t FakeExchange::num_writes() const {
  std::lock_guard lock(mutex_);
  return num_writes_;
}

}  // namespace foretoken::test
