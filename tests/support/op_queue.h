#pragma once
#include <gtest/gtest.h>

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

}  // namespace foretoken::test
