#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/queue.h"

namespace foretoken {

// An op with its arguments.
struct ListedOp {
  uint16_t op = 0;
  size_t args_bytes = 0;
  alignas(16) std::array<std::byte, kMaxOpArgs> args;
};

// Enqueues the ops in their order.
void launch_ops(Queue& queue, std::span<const ListedOp> ops);

// A queue that runs nothing and keeps the ops: to look at what a piece of code would enqueue, and
// to run parts of it. Whatever else a queue does is a programmer's error here.
class OpList final : public Queue {
 public:
  const std::vector<ListedOp>& ops() const { return ops_; }

  void launch_op(uint16_t op, const void* args, size_t args_bytes) override;
  void copy(void* dst, const void* src, size_t bytes) override;
  void fill(void* dst, int byte_value, size_t bytes) override;
  void call_host(void (*function)(void*), void* context) override;
  void record(Event event, uint64_t value) override;
  void begin_capture() override;
  std::unique_ptr<Graph> end_capture() override;
  void replay(Graph& graph) override;
  Status wait(Event event, uint64_t value, std::chrono::milliseconds timeout) override;
  Status drain() override;

 private:
  std::vector<ListedOp> ops_;
};

}  // namespace foretoken
