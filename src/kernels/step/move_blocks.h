#pragma once
#include <cstddef>

#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// A device array in which every KV block has so many bytes: those of block b at base + b * bytes.
struct BlockPart {
  std::byte* base = nullptr;
  int64_t bytes = 0;
};

// A part, and where its bytes begin in the image of a block; a multiple of 16.
struct ImagePart {
  BlockPart part;
  int64_t at = 0;
};

// A KV block and the image of it.
struct DeviceBlockMove {
  int32_t block;
  int32_t image;
  // Of a block that comes in, for its page header (PageHeader).
  int32_t parent;
  uint32_t parent_epoch;
  uint32_t epoch;
};

// Copies blocks to images, or images to blocks: all parts, and the page headers where there are
// some. The header of a block that comes in keeps the image's counts and has the move's links and
// epoch. No two moves of a call write the same block or image. Slots of sequences can stand for
// blocks: parts are arrays by slot then (Model::state_parts).
struct MoveBlocksArgs {
  static constexpr Op kOp = Op::kMoveBlocks;
  const DeviceBlockMove* moves;  // [num_moves] in pinned memory
  const ImagePart* parts;        // [num_parts] in device memory
  PageHeader* headers;           // [num_blocks], or null: there are none
  std::byte* images;             // in pinned or device memory, image_bytes each
  int64_t image_bytes;           // a multiple of 16
  int64_t header_at;             // where a header lies in an image; a multiple of 16
  int32_t num_moves;
  int32_t num_parts;
  int32_t inwards;  // 1: from images to blocks
};

void move_blocks(Queue& queue, const MoveBlocksArgs& args);

}  // namespace foretoken
