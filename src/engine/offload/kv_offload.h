#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "device/arena.h"
#include "kernels/step/move_blocks.h"
#include "sched/kv_blocks.h"
#include "sched/step_plan.h"

namespace foretoken {

// What a KV block consists of: its token page and header, and every array that has bytes for it
// (KvCache::block_parts, Drafter::block_parts).
struct KvOffloadParts {
  int num_blocks = 0;
  PageHeader* headers = nullptr;  // [num_blocks], of the device
  std::vector<BlockPart> parts;
};

// The bytes behind HostBlocks: images of KV blocks in pinned memory, and the moves between them and
// the device, which the queue runs before the step whose plan asks for them. Memory is taken once;
// nothing here waits. Engine thread, but for `make`.
class KvOffload {
 public:
  // As many images as `bytes` hold. `max_moves`: of a plan, in each direction. InvalidArgument
  // where not one image fits, ResourceExhausted where the memory is not there; both name the flag.
  static Result<std::unique_ptr<KvOffload>> make(Device& device, Queue& queue,
                                                 const KvOffloadParts& parts, int64_t bytes,
                                                 int max_moves);

  int num_images() const { return num_images_; }
  int64_t image_bytes() const { return args_.image_bytes; }

  // Enqueues the moves of a step, `out` to host memory before `in` from there. At most
  // kStepRingSize - 1 steps are in flight.
  void enqueue(Queue& queue, uint64_t step, std::span<const BlockMove> out,
               std::span<const BlockMove> in);
  // Whether a plan can hold such moves.
  bool can_move(std::span<const BlockMove> moves) const;

  // What HostBlockStats said last, for any thread.
  struct Counts {
    std::atomic<int64_t> queried_tokens{0};
    std::atomic<int64_t> hit_tokens{0};
    std::atomic<int64_t> blocks_out{0};
    std::atomic<int64_t> blocks_in{0};
    void store(const HostBlockStats& stats);
  };

 private:
  KvOffload(Device& device, int max_moves)
      : max_moves_(max_moves),
        arena_(device, MemoryKind::kDevice),
        pinned_(device, MemoryKind::kPinned) {}
  Status take(Queue& queue, const KvOffloadParts& parts, int64_t bytes);
  void enqueue_list(Queue& queue, std::span<const BlockMove> moves, DeviceBlockMove* list,
                    bool inwards);

  const int max_moves_;
  int num_blocks_ = 0;
  Arena arena_;
  Arena pinned_;
  int num_images_ = 0;
  DeviceBlockMove* ring_ = nullptr;  // pinned: [kStepRingSize, 2, max_moves]
  MoveBlocksArgs args_{};
};

}  // namespace foretoken
