#include "kernels/step/move_blocks.h"

#include "base/check.h"

namespace foretoken {

void move_blocks(Queue& queue, const MoveBlocksArgs& args) {
  FT_CHECK(args.num_moves > 0 && args.num_parts >= 0);
  FT_CHECK(args.moves != nullptr && args.images != nullptr);
  FT_CHECK(args.num_parts == 0 || args.parts != nullptr);
  FT_CHECK(args.image_bytes % 16 == 0 && args.header_at % 16 == 0);
  queue.launch(args);
}

}  // namespace foretoken
