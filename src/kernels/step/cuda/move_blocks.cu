#include <algorithm>

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/step/cuda/copy_bytes.cuh"
#include "kernels/step/move_blocks.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBytesOfBlock = 64 << 10;  // of a part, on average, where that is large
constexpr int64_t kMaxPieces = 8;

// The blocks of blockIdx.z divide them.
__device__ void copy_part(std::byte* to, const std::byte* from, int64_t bytes) {
  copy_bytes(to, from, bytes, int64_t{blockIdx.z} * kThreads + threadIdx.x,
             int64_t{gridDim.z} * kThreads);
}

__device__ void move_header(const MoveBlocksArgs& a, const DeviceBlockMove& move,
                            std::byte* image) {
  if (threadIdx.x != 0 || blockIdx.z != 0 || a.headers == nullptr) return;
  auto* kept = reinterpret_cast<PageHeader*>(image + a.header_at);
  PageHeader& header = a.headers[move.block];
  if (a.inwards == 0) {
    *kept = header;
    return;
  }
  PageHeader next = *kept;
  next.parent = move.parent;
  next.parent_epoch = move.parent_epoch;
  next.epoch = move.epoch;
  header = next;
}

// Blocks for each part of each move, and for its header.
__global__ void __launch_bounds__(kThreads) move_blocks_kernel(MoveBlocksArgs args) {
  wait_for_previous();
  const DeviceBlockMove move = args.moves[blockIdx.y];
  std::byte* image = args.images + int64_t{move.image} * args.image_bytes;
  if (static_cast<int>(blockIdx.x) == args.num_parts) {
    move_header(args, move, image);
    return;
  }
  const ImagePart part = args.parts[blockIdx.x];
  std::byte* block = part.part.base + int64_t{move.block} * part.part.bytes;
  if (args.inwards != 0) {
    copy_part(block, image + part.at, part.part.bytes);
  } else {
    copy_part(image + part.at, block, part.part.bytes);
  }
}

}  // namespace

void launch_move_blocks(const void* packed, cudaStream_t stream) {
  auto args = op_args<MoveBlocksArgs>(packed);
  constexpr int kMaxMoves = 65535;  // blockIdx.y
  // The states of a sequence have a few parts of megabytes each.
  const int64_t part_bytes = args.image_bytes / (args.num_parts + 1);
  const auto pieces =
      static_cast<unsigned>(std::clamp<int64_t>(part_bytes / kBytesOfBlock, 1, kMaxPieces));
  for (int left = args.num_moves; left > 0; left -= kMaxMoves, args.moves += kMaxMoves) {
    const auto moves = static_cast<unsigned>(left < kMaxMoves ? left : kMaxMoves);
    launch_kernel(move_blocks_kernel,
                  dim3(static_cast<unsigned>(args.num_parts) + 1, moves, pieces), kThreads, 0,
                  stream, args);
  }
}

}  // namespace foretoken::cuda
