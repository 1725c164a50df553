#pragma once
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "device/arena.h"
#include "kernels/step/move_blocks.h"
#include "sched/step_plan.h"

namespace foretoken {

// The bytes behind StateSnapshots, in device memory: what a sequence has in all recurrent layers of
// this rank, copied whole from its slot and back. The queue runs the copies before the step whose
// plan asks for them. Memory is taken once; nothing here waits. Engine thread, but for `make`.
class StateStore {
 public:
  // What a snapshot takes. `parts`: by slot (Model::state_parts, Drafter::state_parts).
  static int64_t snapshot_bytes(std::span<const BlockPart> parts);
  // ResourceExhausted where the memory is not there, with the flag. A rank without recurrent layers
  // has no parts, and copies nothing.
  static Result<std::unique_ptr<StateStore>> make(Device& device, Queue& queue,
                                                  std::span<const BlockPart> parts, int num_slots,
                                                  int num_snapshots);

  // Every array that has bytes for each snapshot.
  std::vector<BlockPart> parts() const {
    if (args_.num_parts == 0) return {};
    return {{args_.images, args_.image_bytes}};
  }

  // Enqueues the copies of a step, `out` to snapshots before `in` from them. At most
  // kStepRingSize - 1 steps are in flight.
  void enqueue(Queue& queue, uint64_t step, std::span<const StateMove> out,
               std::span<const StateMove> in);
  // Whether a plan can hold such moves.
  bool can_move(std::span<const StateMove> moves) const;

 private:
  StateStore(Device& device, int num_slots, int num_snapshots)
      : num_slots_(num_slots),
        num_snapshots_(num_snapshots),
        arena_(device, MemoryKind::kDevice),
        pinned_(device, MemoryKind::kPinned) {}
  Status take(Queue& queue, std::span<const BlockPart> parts);
  void enqueue_list(Queue& queue, std::span<const StateMove> moves, DeviceBlockMove* list,
                    bool inwards);
  int max_moves() const { return 2 * num_slots_; }

  const int num_slots_;
  const int num_snapshots_;
  Arena arena_;
  Arena pinned_;
  DeviceBlockMove* ring_ = nullptr;  // pinned: [kStepRingSize, 2, max_moves]
  MoveBlocksArgs args_{};
};

}  // namespace foretoken
