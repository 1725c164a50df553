#pragma once
#include <atomic>
#include <climits>
#include <memory>

#include "base/result.h"
#include "device/queue.h"

namespace foretoken::test {

// Hands everything on, counts it, and refuses captures when told to.
class CountingQueue : public Queue {
 public:
  static constexpr const char* kRefusal = "no graphs today";

  explicit CountingQueue(Queue& real) : real_(real) {}
  explicit CountingQueue(std::unique_ptr<Queue> real) : owned_(std::move(real)), real_(*owned_) {}

  std::atomic<int> num_ops = 0;  // launched, not captured
  std::atomic<int> num_replays = 0;
  std::atomic<int> num_others = 0;  // copies, fills, host calls and records, not captured
  std::atomic<int> num_captures = 0;
  std::atomic<int> num_forks = 0;            // captured ones, too
  std::atomic<int> captures_left = INT_MAX;  // that succeed

  int num_launches() const { return num_ops + num_replays + num_others; }
  void clear() { num_ops = num_replays = num_others = num_captures = 0; }

  void launch_op(uint16_t op, const void* args, size_t bytes) override {
    count(num_ops);
    real_.launch_op(op, args, bytes);
  }
  void copy(void* dst, const void* src, size_t bytes) override {
    count(num_others);
    real_.copy(dst, src, bytes);
  }
  void fill(void* dst, int value, size_t bytes) override {
    count(num_others);
    real_.fill(dst, value, bytes);
  }
  void call_host(void (*function)(void*), void* context) override {
    count(num_others);
    real_.call_host(function, context);
  }
  void record(Event event, uint64_t value) override {
    count(num_others);
    real_.record(event, value);
  }
  void fork() override {
    ++num_forks;
    real_.fork();
  }
  void use_lane(int lane) override { real_.use_lane(lane); }
  void join() override { real_.join(); }
  void begin_capture() override {
    capturing_ = true;
    real_.begin_capture();
  }
  std::unique_ptr<Graph> end_capture() override {
    capturing_ = false;
    ++num_captures;
    auto graph = real_.end_capture();
    return captures_left-- > 0 ? std::move(graph) : nullptr;
  }
  Status capture_error() const override { return unsupported(kRefusal); }
  void replay(Graph& graph) override {
    ++num_replays;
    real_.replay(graph);
  }
  Status wait(Event event, uint64_t value, std::chrono::milliseconds timeout) override {
    return real_.wait(event, value, timeout);
  }
  Status drain() override { return real_.drain(); }

 private:
  void count(std::atomic<int>& counter) const {
    if (!capturing_) ++counter;
  }

  const std::unique_ptr<Queue> owned_;
  Queue& real_;
  bool capturing_ = false;
};

}  // namespace foretoken::test
