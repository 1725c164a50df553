#pragma once
#include <gtest/gtest.h>

#include <cstring>

#include "device/queue.h"

namespace foretoken::test {

// A queue for code that only enqueues ops: everything else that would touch memory fails the test.
class OpQueue : public Queue {
 public:
  void copy(void*, const void*, size_t) override { ADD_FAILURE(); }
  void fill(void*, int, size_t) override { ADD_FAILURE(); }
  void call_host(void (*)(void*), void*) override { ADD_FAILURE(); }
  void record(Event, uint64_t) override { ADD_FAILURE(); }
  void begin_capture() override {}
  std::unique_ptr<Graph> end_capture() override { return nullptr; }
  void replay(Graph&) override {}
  Status wait(Event, uint64_t, std::chrono::milliseconds) override { return {}; }
  Status drain() override { return {}; }
};

// Keeps the arguments of the op that a drafter enqueues, which is the one of Args.
template <class Args>
class ArgsQueue final : public OpQueue {
 public:
  void launch_op(uint16_t op, const void* args, size_t args_bytes) override {
    ++num_ops;
    ASSERT_EQ(op, static_cast<uint16_t>(Args::kOp));
    ASSERT_EQ(args_bytes, sizeof last);
    std::memcpy(&last, args, sizeof last);
  }

  int num_ops = 0;
  Args last{};
};

}  // namespace foretoken::test
