#include <algorithm>

#include "base/check.h"
#include "kernels/comm/cuda/expert_part.cuh"
#include "kernels/comm/cuda/nccl_message.cuh"
#include "kernels/comm/cuda/nccl_ops.h"
#include "kernels/comm/cuda/rank_ops.cuh"
#include "kernels/cuda/common.cuh"

namespace foretoken::cuda {
namespace {

using Message = NcclExchange::Message;

constexpr int64_t kVectorBytes = sizeof(float4);

// What a rank gives all others of its rows [first, first + rows): how many live rows it has in all,
// then x, ids and weights, with room for `rows` of each.
struct RowMessage {
  int64_t x_bytes;  // of a row, a multiple of kVectorBytes
  int top_k;
  int first;
  int rows;

  static int64_t header_bytes() { return kVectorBytes; }
  static int64_t row_bytes(int64_t x_bytes, int top_k) { return x_bytes + int64_t{top_k} * 8; }
  __host__ __device__ int64_t choices() const { return int64_t{rows} * top_k; }
  int64_t bytes() const {
    const int64_t all = header_bytes() + rows * x_bytes + choices() * 8;
    return (all + kVectorBytes - 1) / kVectorBytes * kVectorBytes;
  }
  template <class Bytes>  // char or const char
  __device__ auto* x(Bytes* message) const {
    return message + kVectorBytes;
  }
  template <class Bytes>
  __device__ auto* ids(Bytes* message) const {
    return x(message) + rows * x_bytes;
  }
  template <class Bytes>
  __device__ auto* weights(Bytes* message) const {
    return ids(message) + choices() * 4;
  }
  // Those of `live` rows that are in the message.
  __device__ int64_t here(int live) const { return min(max(live - first, 0), rows); }
};

template <class T>
__device__ void copy_elements(void* to, const void* from, int64_t count) {
  for_each_element(count,
                   [&](int64_t i) { static_cast<T*>(to)[i] = static_cast<const T*>(from)[i]; });
}

__device__ int live_of(const char* message) { return *reinterpret_cast<const int32_t*>(message); }

__global__ void __launch_bounds__(kMessageThreads)
    pack_rows_kernel(DispatchRowsArgs args, RowMessage piece, char* message) {
  wait_for_previous();
  const int live = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
  if (blockIdx.x == 0 && threadIdx.x == 0) *reinterpret_cast<int32_t*>(message) = live;
  const int64_t here = piece.here(live);
  copy_elements<float4>(piece.x(message),
                        static_cast<const char*>(args.x) + piece.first * piece.x_bytes,
                        here * piece.x_bytes / kVectorBytes);
  const int64_t begin = int64_t{piece.first} * args.top_k;
  copy_elements<uint32_t>(piece.ids(message), args.ids + begin, here * args.top_k);
  copy_elements<uint32_t>(piece.weights(message), args.weights + begin, here * args.top_k);
}

// Where the messages of all ranks lie.
struct Messages {
  const char* mine;
  const char* inbox;
  int rank;

  __device__ const char* of(int other) const {
    return other == rank ? mine : inbox + other * kNcclPieceBytes;
  }
};

// Rank blockIdx.y's rows behind those of the ranks before it.
__global__ void __launch_bounds__(kMessageThreads)
    place_rows_kernel(DispatchRowsArgs args, RowMessage piece, Messages all) {
  wait_for_previous();
  const int size = static_cast<int>(gridDim.y);
  const int from = static_cast<int>(blockIdx.y);
  const bool tells = piece.first == 0 && blockIdx.x == 0 && from == 0 && threadIdx.x == 0;
  int64_t begin = 0;
  int rows = 0;
  for (int rank = 0; rank < size; ++rank) {
    if (rank == from) begin = rows;
    if (tells) args.out.begins[rank] = rows;
    rows += live_of(all.of(rank));
  }
  if (tells) {
    args.out.begins[size] = rows;
    *args.out.counts = {rows, 0, 0, 0};
  }
  const char* message = all.of(from);
  const int64_t here = piece.here(live_of(message));
  const int64_t first = begin + piece.first;
  copy_elements<float4>(static_cast<char*>(args.out.x) + first * piece.x_bytes, piece.x(message),
                        here * piece.x_bytes / kVectorBytes);
  copy_elements<uint32_t>(args.out.ids + first * args.top_k, piece.ids(message), here * args.top_k);
  copy_elements<uint32_t>(args.out.weights + first * args.top_k, piece.weights(message),
                          here * args.top_k);
}

// Rows [first, first + rows) of each rank.
struct RowPiece {
  int first;
  int rows;

  // The live ones of a rank's rows [begins[rank], begins[rank + 1]).
  __device__ int64_t here(const int32_t* begins, int rank) const {
    return min(max(begins[rank + 1] - begins[rank] - first, 0), rows);
  }
};

// This rank's sums of the rows of rank blockIdx.y, `stride` bytes apart in `outbox`.
__global__ void __launch_bounds__(kMessageThreads)
    pack_sums_kernel(ReturnRowsArgs args, RowPiece piece, char* outbox, int64_t stride, int own) {
  wait_for_previous();
  const int peer = static_cast<int>(blockIdx.y);
  if (peer == own) return;
  const int64_t width = args.hidden / 4;
  const auto* from =
      reinterpret_cast<const float4*>(args.sums) + (args.begins[peer] + piece.first) * width;
  copy_elements<float4>(outbox + peer * stride, from, piece.here(args.begins, peer) * width);
}

// As return_kernel of expert_exchange.cu adds them.
__global__ void __launch_bounds__(kMessageThreads)
    add_returned_kernel(ReturnRowsArgs args, RowPiece piece, const char* inbox, int own, int size) {
  wait_for_previous();
  const int64_t width = args.hidden / 4;
  const auto* sums = reinterpret_cast<const float4*>(args.sums) + args.begins[own] * width;
  auto* out = reinterpret_cast<float4*>(args.out);
  for_each_element(piece.here(args.begins, own) * width, [&](int64_t i) {
    const int64_t at = piece.first * width + i;
    float4 sum = shared_part(args, at);
    for (int rank = 0; rank < size; ++rank) {
      const auto* box = reinterpret_cast<const float4*>(inbox + rank * kNcclPieceBytes);
      sum = sum_of(sum, rank == own ? sums[at] : box[i]);
    }
    out[at] = args.add != 0 ? sum_of(out[at], sum) : sum;
  });
}

}  // namespace

void nccl_dispatch_rows(const DispatchRowsArgs& args, NcclExchange& nccl, cudaStream_t stream) {
  const int64_t x_bytes = int64_t{args.hidden} * (args.dtype == DType::kBF16 ? 2 : 4);
  // The header, and what rounds a message up.
  const int64_t room = kNcclPieceBytes - RowMessage::header_bytes() - kVectorBytes;
  const auto most = static_cast<int>(room / RowMessage::row_bytes(x_bytes, args.top_k));
  for (int first = 0; first < args.max_rows; first += most) {
    const RowMessage piece{x_bytes, args.top_k, first, std::min(args.max_rows - first, most)};
    const int blocks = message_blocks(piece.rows * x_bytes / kVectorBytes);
    launch_kernel(pack_rows_kernel, blocks, kMessageThreads, 0, stream, args, piece, nccl.outbox());
    nccl.exchange([&](int) { return Message{nccl.outbox(), piece.bytes()}; },
                  [&](int peer) { return Message{nccl.inbox(peer), piece.bytes()}; }, stream);
    launch_kernel(place_rows_kernel, dim3(blocks, nccl.size()), kMessageThreads, 0, stream, args,
                  piece, Messages{nccl.outbox(), nccl.inbox(0), nccl.rank()});
  }
}

void nccl_return_rows(const ReturnRowsArgs& args, NcclExchange& nccl, cudaStream_t stream) {
  const int64_t row_bytes = int64_t{args.hidden} * int64_t{sizeof(float)};
  const auto most = static_cast<int>(kNcclPieceBytes / nccl.size() / row_bytes);
  FT_CHECK(most > 0);  // a row to each of hundreds of ranks is more than a piece
  for (int first = 0; first < args.max_rows; first += most) {
    const RowPiece piece{first, std::min(args.max_rows - first, most)};
    const int64_t bytes = piece.rows * row_bytes;
    const int blocks = message_blocks(bytes / kVectorBytes);
    launch_kernel(pack_sums_kernel, dim3(blocks, nccl.size()), kMessageThreads, 0, stream, args,
                  piece, nccl.outbox(), bytes, nccl.rank());
    nccl.exchange([&](int peer) { return Message{nccl.outbox() + peer * bytes, bytes}; },
                  [&](int peer) { return Message{nccl.inbox(peer), bytes}; }, stream);
    launch_kernel(add_returned_kernel, blocks, kMessageThreads, 0, stream, args, piece,
                  static_cast<const char*>(nccl.inbox(0)), nccl.rank(), nccl.size());
  }
}

}  // namespace foretoken::cuda
