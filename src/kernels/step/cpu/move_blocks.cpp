#include "kernels/step/move_blocks.h"

#include <cstring>

#include "kernels/cpu/op_table.h"

namespace foretoken::cpu {
namespace {

void move_header(const MoveBlocksArgs& a, const DeviceBlockMove& move, std::byte* image) {
  PageHeader& header = a.headers[move.block];
  if (a.inwards == 0) {
    std::memcpy(image + a.header_at, &header, sizeof(header));
    return;
  }
  std::memcpy(&header, image + a.header_at, sizeof(header));
  header.parent = move.parent;
  header.parent_epoch = move.parent_epoch;
  header.epoch = move.epoch;
}

}  // namespace

void move_blocks(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const MoveBlocksArgs*>(args);
  pool.parallel_for(a.num_moves, [&](int64_t index, int) {
    const DeviceBlockMove& move = a.moves[index];
    std::byte* image = a.images + int64_t{move.image} * a.image_bytes;
    for (int i = 0; i < a.num_parts; ++i) {
      const ImagePart& to = a.parts[i];
      std::byte* block = to.part.base + int64_t{move.block} * to.part.bytes;
      const auto bytes = static_cast<size_t>(to.part.bytes);
      if (a.inwards != 0) {
        std::memcpy(block, image + to.at, bytes);
      } else {
        std::memcpy(image + to.at, block, bytes);
      }
    }
    move_header(a, move, image);
  });
}

}  // namespace foretoken::cpu
