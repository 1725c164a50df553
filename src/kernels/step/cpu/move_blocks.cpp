#include "kernels/step/move_blocks.h"

#include <cstring>

#include "kernels/cpu/op_table.h"

namespace foretoken::cpu {
namespace {

void move_header(const MoveBlocksArgs& a, const DeviceBlockMove& move, std::byte* image) {
  if (a.headers == nullptr) return;
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

void move_part(const MoveBlocksArgs& a, const DeviceBlockMove& move, const ImagePart& to,
               std::byte* image) {
  std::byte* block = to.part.base + int64_t{move.block} * to.part.bytes;
  const auto bytes = static_cast<size_t>(to.part.bytes);
  if (a.inwards != 0) {
    std::memcpy(block, image + to.at, bytes);
  } else {
    std::memcpy(image + to.at, block, bytes);
  }
}

}  // namespace

void move_blocks(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const MoveBlocksArgs*>(args);
  const int64_t pieces = int64_t{a.num_parts} + 1;
  pool.parallel_for(a.num_moves * pieces, [&](int64_t index, int) {
    const DeviceBlockMove& move = a.moves[index / pieces];
    std::byte* image = a.images + int64_t{move.image} * a.image_bytes;
    if (index % pieces == a.num_parts) {
      move_header(a, move, image);
    } else {
      move_part(a, move, a.parts[index % pieces], image);
    }
  });
}

}  // namespace foretoken::cpu
