#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/trace.h"
#include "device/arena.h"
#include "device/device.h"

namespace foretoken {

// A queue in front of another that marks when each op begins and ends on the device. Only ops that
// are enqueued one by one are marked, and only as many as there is room for; two marks an op cost
// some microseconds of device time.
class OpTracer final : public Queue {
 public:
  static Result<std::unique_ptr<OpTracer>> create(Device& device, std::unique_ptr<Queue> queue,
                                                  size_t max_ops);

  // From here on ops are marked. `step_op`: the op that begins a step; steps count from 0.
  void start(uint16_t step_op);
  // Adds what was marked to a lane; `offset_ns` turns the device's times into those of now_ns().
  // The queue must be drained.
  void add_to(TraceLane* lane, int64_t offset_ns) const;

  void launch_op(uint16_t op, const void* args, size_t args_bytes) override;
  void copy(void* dst, const void* src, size_t bytes) override;
  void fill(void* dst, int byte_value, size_t bytes) override;
  void call_host(void (*function)(void*), void* context) override;
  void record(Event event, uint64_t value) override;
  void fork() override { queue_->fork(); }
  void use_lane(int lane) override { queue_->use_lane(lane); }
  void join() override { queue_->join(); }
  void begin_capture() override;
  std::unique_ptr<Graph> end_capture() override;
  Status capture_error() const override { return queue_->capture_error(); }
  void replay(Graph& graph) override;
  Status wait(Event event, uint64_t value, std::chrono::milliseconds timeout) override;
  Status drain() override;

 private:
  struct Marked {
    uint16_t op;
    uint64_t step;
  };
  OpTracer(Device& device, std::unique_ptr<Queue> queue)
      : queue_(std::move(queue)), pinned_(device, MemoryKind::kPinned) {}

  const std::unique_ptr<Queue> queue_;
  Arena pinned_;
  int64_t* marks_ = nullptr;  // pinned [2 * max_ops]: begin and end of each
  std::vector<Marked> ops_;
  size_t max_ops_ = 0;
  bool is_on_ = false;
  bool is_capturing_ = false;
  uint16_t step_op_ = 0;
  uint64_t num_steps_ = 0;
};

}  // namespace foretoken
