#pragma once
#include <array>
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

// What has images in host memory, of one HostPart: places on the device, and every array that has
// bytes for each of them. Of a block of the full group these are its token page and header, its
// keys and values and what drafters keep (KvCache::block_parts, Drafter::block_parts); of one of
// the windowed group its keys and values; of a snapshot its states (StateStore::parts). A rank
// without such layers has places without arrays.
struct KvOffloadPart {
  int first_place = 1;  // block 0 is never handed out
  int num_places = 0;   // those before the first one included; 0: the model has no such part
  PageHeader* headers = nullptr;  // [num_places], of the device; null: there are none
  std::vector<BlockPart> arrays = {};

  int64_t image_bytes() const;
};
using KvOffloadParts = std::array<KvOffloadPart, kNumHostParts>;
// Images of each part.
using ImageCounts = std::array<int, kNumHostParts>;

// How many images `bytes` hold: as many of blocks of the windowed group as of the full one, so that
// a prefix is found wherever it ends, and, where there are snapshots of states, half of the bytes
// for those, but no more of them than of blocks. InvalidArgument, with the flag, where not one of
// each fits or the host has less.
Result<ImageCounts> count_images(const KvOffloadParts& parts, int64_t bytes);
// The bytes that hold images of `num_blocks` blocks, as count_images divides them.
int64_t bytes_of_blocks(const KvOffloadParts& parts, int64_t num_blocks);

// The bytes behind HostBlocks: images in pinned memory, and the moves between them and the device,
// which the queue runs before the step whose plan asks for them. Memory is taken once; nothing here
// waits. Engine thread, but for `make`.
class KvOffload {
 public:
  // `max_moves`: of a plan, in each direction. ResourceExhausted where the memory is not there,
  // with the flag.
  static Result<std::unique_ptr<KvOffload>> make(Device& device, Queue& queue,
                                                 const KvOffloadParts& parts,
                                                 const ImageCounts& images, int max_moves);

  int max_moves() const { return max_moves_; }
  int64_t image_bytes(HostPart part) const { return of(part).args.image_bytes; }

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
    std::array<std::atomic<int64_t>, kNumHostParts> moved_out{};
    std::array<std::atomic<int64_t>, kNumHostParts> moved_in{};
    void store(const HostBlockStats& stats);
  };
  // That this rank has moved.
  int64_t bytes_of(const std::array<std::atomic<int64_t>, kNumHostParts>& moves) const;

 private:
  struct Images {
    int first_place = 0;
    int num_places = 0;
    int num_images = 0;
    MoveBlocksArgs args{};
    bool has_bytes() const { return args.image_bytes > 0; }
  };

  KvOffload(Device& device, int max_moves)
      : max_moves_(max_moves),
        arena_(device, MemoryKind::kDevice),
        pinned_(device, MemoryKind::kPinned) {}
  Status take(Queue& queue, const KvOffloadParts& parts, const ImageCounts& images);
  Status take_images(const KvOffloadPart& part, ImagePart* staged, Images* images);
  void enqueue_list(Queue& queue, std::span<const BlockMove> moves, DeviceBlockMove* list,
                    bool inwards);
  const Images& of(HostPart part) const { return images_[static_cast<size_t>(part)]; }

  const int max_moves_;
  Arena arena_;
  Arena pinned_;
  DeviceBlockMove* ring_ = nullptr;  // pinned: [kStepRingSize, 2, max_moves]
  std::array<Images, kNumHostParts> images_{};
};

}  // namespace foretoken
