#pragma once
#include <foretoken/status.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "device/event.h"

namespace foretoken {

// Largest argument block of an op, in bytes. Arguments are copied when an op is enqueued.
inline constexpr size_t kMaxOpArgs = 320;

// A recorded sequence of ops with their arguments baked in; replayed by the queue that made it.
// CPU: a task list. CUDA: a cudaGraphExec.
class Graph {
 public:
  virtual ~Graph() = default;
  // Number of ops (CPU) or graph nodes (CUDA).
  virtual int num_nodes() const = 0;
};

// The one way to make a device do something: an in-order queue of ops. All functions are called
// by one thread at a time (the engine loop, or the start-up thread before it). Nothing here waits
// except `wait` and `drain`. The first error of any op is kept; later ops are skipped, and every
// later `wait` and `drain` returns that error.
class Queue {
 public:
  virtual ~Queue() = default;

  // Enqueues op number `op` of the device's op table with a copy of `args`.
  virtual void launch_op(uint16_t op, const void* args, size_t args_bytes) = 0;

  // Enqueues an op from its argument block; `Args::kOp` names the op (kernels/op.h).
  template <class Args>
  void launch(const Args& args) {
    static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) <= kMaxOpArgs);
    launch_op(static_cast<uint16_t>(Args::kOp), &args, sizeof(Args));
  }

  // Copies between any two places (host pinned or device). `src` must stay valid until the copy
  // has run.
  virtual void copy(void* dst, const void* src, size_t bytes) = 0;
  virtual void fill(void* dst, int byte_value, size_t bytes) = 0;

  // Enqueues a call of `function(context)` on a host thread of the queue, in order with the ops
  // around it; it sees what they wrote to pinned memory and they see what it writes. It must not
  // use the queue or throw. `context` must outlive its runs. May be captured.
  virtual void call_host(void (*function)(void* context), void* context) = 0;

  // Enqueues `event.word = value` with release order.
  virtual void record(Event event, uint64_t value) = 0;

  // Between these two calls ops are recorded, not run. A queue records one graph at a time. Null
  // when the device could not record them; that alone is no error of the queue, which goes on.
  virtual void begin_capture() = 0;
  virtual std::unique_ptr<Graph> end_capture() = 0;
  // Why the last `end_capture` gave null.
  virtual Status capture_error() const { return {}; }
  // Enqueues the whole graph. The same graph may be enqueued again before it has run; it must
  // outlive its runs.
  virtual void replay(Graph& graph) = 0;

  // Between `fork` and `join` ops go to two lanes: those of a lane run in their order, behind what
  // was enqueued before the fork, and what is enqueued after the join runs behind both. A device
  // may run the lanes at the same time, so that neither reads what the other writes; one that does
  // not keeps the order of all ops. The first lane is current behind a fork; `use_lane` (0 or 1)
  // says where the next ops go. May be captured, both ends in one graph. Not nested.
  virtual void fork() {}
  virtual void use_lane(int /*lane*/) {}
  virtual void join() {}

  // Host wait until the event reached `value`: spins briefly, then parks. Returns the queue's
  // error if it has one. Aborted when `timeout` passes.
  virtual Status wait(Event event, uint64_t value, std::chrono::milliseconds timeout) = 0;

  // Waits until everything enqueued has run. Start-up, shutdown and tests only.
  virtual Status drain() = 0;
};

}  // namespace foretoken
