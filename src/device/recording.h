#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "base/result.h"
#include "device/queue.h"

namespace foretoken {

// Ops recorded once and enqueued many times: graphs, and between them the ops that stay outside of
// graphs. One graph alone is the usual case.
class Recording {
 public:
  // Enqueues everything in the order in which it was recorded. The recording must outlive its runs.
  void replay(Queue& queue) const;
  // Ops (CPU) or graph nodes (CUDA) of all pieces.
  int num_nodes() const;

 private:
  friend class Recorder;
  struct SingleOp {
    uint16_t op = 0;
    size_t args_bytes = 0;
    alignas(16) std::array<std::byte, kMaxOpArgs> args;
  };
  using Piece = std::variant<std::unique_ptr<Graph>, SingleOp>;

  std::vector<Piece> pieces_;
};

// Records what is enqueued into it on a queue, which must not be used otherwise meanwhile. Ops that
// cannot be captured end a graph and stay single ops. `finish` comes last, in any case.
class Recorder final : public Queue {
 public:
  using StaysOut = bool (*)(uint16_t op);
  // `stays_out`: ops left out of graphs; null: none.
  Recorder(Queue& queue, StaysOut stays_out) : queue_(queue), stays_out_(stays_out) {}

  // The recording; or why it could not be made, and then the queue is as it was before.
  Result<Recording> finish();

  void launch_op(uint16_t op, const void* args, size_t args_bytes) override;
  void copy(void* dst, const void* src, size_t bytes) override;
  void fill(void* dst, int byte_value, size_t bytes) override;
  void call_host(void (*function)(void*), void* context) override;
  void record(Event event, uint64_t value) override;
  // No op between these may be one that stays out of graphs.
  void fork() override;
  void use_lane(int lane) override;
  void join() override;
  // Programmer's errors here.
  void begin_capture() override;
  std::unique_ptr<Graph> end_capture() override;
  void replay(Graph& graph) override;
  Status wait(Event event, uint64_t value, std::chrono::milliseconds timeout) override;
  Status drain() override;

 private:
  bool open();
  void close();

  Queue& queue_;
  const StaysOut stays_out_;
  bool is_open_ = false;
  bool is_forked_ = false;
  Status error_;
  Recording recording_;
};

}  // namespace foretoken
