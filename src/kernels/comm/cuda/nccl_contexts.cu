#include <algorithm>

#include "base/check.h"
#include "kernels/attention/attention.h"
#include "kernels/comm/cuda/context_merge.cuh"
#include "kernels/comm/cuda/nccl_message.cuh"
#include "kernels/comm/cuda/nccl_ops.h"
#include "kernels/cuda/common.cuh"

namespace foretoken::cuda {
namespace {

using Message = NcclExchange::Message;

// Rows [first, first + rows) of a step.
struct RowPiece {
  int first;
  int rows;

  __device__ int here(const StepCounts* counts, int max_rows) const {
    return min(max(live_rows(counts, RowKind::kToken, 0, max_rows) - first, 0), rows);
  }
};

// With each other rank of the group: what it gets, by its place there, and where its own comes.
template <class Sent>
void exchange_in_group(const ContextRanks& ranks, NcclExchange& nccl, int64_t bytes,
                       const Sent& sent, cudaStream_t stream) {
  const auto has = [&](int peer) { return place_in_group(ranks, peer) >= 0; };
  nccl.exchange(
      [&](int peer) {
        return has(peer) ? Message{sent(place_in_group(ranks, peer)), bytes} : Message{nullptr, 0};
      },
      [&](int peer) { return has(peer) ? Message{nccl.inbox(peer), bytes} : Message{nullptr, 0}; },
      stream);
}

__global__ void __launch_bounds__(kMessageThreads)
    pack_parts_kernel(GatherPartsArgs args, RowPiece piece, uint32_t* message) {
  wait_for_previous();
  const int64_t width = int64_t{args.pieces} * (args.piece_bytes / 4);
  const auto* in = static_cast<const uint32_t*>(args.in);
  for_each_element(piece.here(args.counts, args.max_rows) * width, [&](int64_t i) {
    const int64_t row = piece.first + i / width;
    message[i] = in[(args.from == nullptr ? row : args.from[row]) * width + i % width];
  });
}

// Grid (blocks, ranks of the group).
__global__ void __launch_bounds__(kMessageThreads)
    place_parts_kernel(GatherPartsArgs args, RowPiece piece, const char* mine, const char* inbox) {
  wait_for_previous();
  const int rank = static_cast<int>(blockIdx.y);
  const int64_t words = args.piece_bytes / 4;
  const char* message =
      rank == args.ranks.rank ? mine : inbox + (args.ranks.first + rank) * kNcclPieceBytes;
  auto* out = static_cast<uint32_t*>(args.out) +
              int64_t{piece.first} * args.pieces * args.ranks.size * words;
  for_each_element(piece.here(args.counts, args.max_rows) * args.pieces * words, [&](int64_t i) {
    out[(i / words * args.ranks.size + rank) * words + i % words] =
        reinterpret_cast<const uint32_t*>(message)[i];
  });
}

__global__ void __launch_bounds__(kMessageThreads)
    merge_received_kernel(MergePartialsArgs args, RowPiece piece, const char* inbox) {
  wait_for_previous();
  const int64_t size = attention_state_size(args.value_size);
  const int64_t first = int64_t{piece.first} * args.num_heads;
  const float* own =
      args.states + (int64_t{args.ranks.rank} * args.max_rows * args.num_heads + first) * size;
  const int64_t count = int64_t{piece.here(args.counts, args.max_rows)} * args.num_heads;
  for_each_element(count * args.value_size, [&](int64_t i) {
    const int64_t state = i / args.value_size;
    const auto part = [&](int rank, int at) {
      const auto* box =
          reinterpret_cast<const float*>(inbox + (args.ranks.first + rank) * kNcclPieceBytes);
      return (rank == args.ranks.rank ? own : box)[state * size + at];
    };
    const int head = static_cast<int>((first + state) % args.num_heads);
    store_merged(args, first * args.value_size + i,
                 merged_element(args, head, static_cast<int>(i % args.value_size), part));
  });
}

}  // namespace

void nccl_gather_parts(const GatherPartsArgs& args, NcclExchange& nccl, cudaStream_t stream) {
  const int64_t row_bytes = int64_t{args.pieces} * args.piece_bytes;
  const auto most = static_cast<int>(kNcclPieceBytes / row_bytes);
  FT_CHECK(most > 0);
  for (int first = 0; first < args.max_rows; first += most) {
    const RowPiece piece{first, std::min(args.max_rows - first, most)};
    const int64_t bytes = piece.rows * row_bytes;
    const int blocks = message_blocks(bytes / 4);
    launch_kernel(pack_parts_kernel, blocks, kMessageThreads, 0, stream, args, piece,
                  reinterpret_cast<uint32_t*>(nccl.outbox()));
    exchange_in_group(args.ranks, nccl, bytes, [&](int) { return nccl.outbox(); }, stream);
    launch_kernel(place_parts_kernel, dim3(blocks, args.ranks.size), kMessageThreads, 0, stream,
                  args, piece, static_cast<const char*>(nccl.outbox()),
                  static_cast<const char*>(nccl.inbox(0)));
  }
}

void nccl_merge_partials(const MergePartialsArgs& args, NcclExchange& nccl, cudaStream_t stream) {
  const int64_t row_floats = int64_t{args.num_heads} * attention_state_size(args.value_size);
  const auto most = static_cast<int>(kNcclPieceBytes / (row_floats * int64_t{sizeof(float)}));
  FT_CHECK(most > 0);
  auto* states = const_cast<float*>(args.states);
  for (int first = 0; first < args.max_rows; first += most) {
    const RowPiece piece{first, std::min(args.max_rows - first, most)};
    exchange_in_group(
        args.ranks, nccl, piece.rows * row_floats * int64_t{sizeof(float)},
        [&](int place) { return states + (int64_t{place} * args.max_rows + first) * row_floats; },
        stream);
    const int64_t elements = int64_t{piece.rows} * args.num_heads * args.value_size;
    launch_kernel(merge_received_kernel, message_blocks(elements), kMessageThreads, 0, stream, args,
                  piece, static_cast<const char*>(nccl.inbox(0)));
  }
}

}  // namespace foretoken::cuda
