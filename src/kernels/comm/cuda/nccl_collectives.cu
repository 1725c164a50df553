#include <algorithm>

#include "kernels/comm/cuda/nccl_ops.h"
#include "kernels/comm/cuda/rank_ops.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/draft_entries.h"

namespace foretoken::cuda {
namespace {

using Message = NcclExchange::Message;

constexpr int kThreads = 256;
constexpr int kMaxBlocks = 512;
constexpr int64_t kVectorBytes = sizeof(float4);
constexpr int64_t kPieceVectors = kNcclPieceBytes / kVectorBytes;
// Above it every rank sums a part and gives it to the others: 2 (n - 1) / n of the bytes a rank
// sends, in two exchanges, instead of n - 1 in one.
constexpr int64_t kOneExchangeBytes = 256 << 10;

int blocks_for(int64_t elements) { return std::min(ceil_div(elements, kThreads), kMaxBlocks); }

// x = the ranks' values in the order of ranks; the others' lie `stride` apart in `inbox`.
__global__ void __launch_bounds__(kThreads)
    sum_kernel(float4* x, const float4* inbox, int64_t stride, int64_t count, int own, int size) {
  wait_for_previous();
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * kThreads) {
    const float4 mine = x[i];
    float4 sum{};
    for (int rank = 0; rank < size; ++rank) {
      const float4 part = rank == own ? mine : inbox[rank * stride + i];
      sum = rank == 0 ? part : sum_of(sum, part);
    }
    x[i] = sum;
  }
}

void sum_at_once(float4* x, int64_t count, NcclExchange& nccl, cudaStream_t stream) {
  nccl.all_gather(x, nccl.inbox(0), count * kVectorBytes, stream);
  launch_kernel(sum_kernel, blocks_for(count), kThreads, 0, stream, x,
                reinterpret_cast<const float4*>(nccl.inbox(0)), count, count, nccl.rank(),
                nccl.size());
}

void sum_by_parts(float4* x, int64_t count, NcclExchange& nccl, cudaStream_t stream) {
  const int64_t each = (count + nccl.size() - 1) / nccl.size();
  const auto part = [&](int rank) {
    const int64_t begin = std::min(rank * each, count);
    return Message{x + begin, (std::min(begin + each, count) - begin) * kVectorBytes};
  };
  const Message own = part(nccl.rank());
  nccl.exchange(part, [&](int peer) { return Message{nccl.inbox(peer), own.bytes}; }, stream);
  const int64_t own_count = own.bytes / kVectorBytes;
  if (own_count > 0) {
    launch_kernel(sum_kernel, blocks_for(own_count), kThreads, 0, stream,
                  static_cast<float4*>(own.data), reinterpret_cast<const float4*>(nccl.inbox(0)),
                  kPieceVectors, own_count, nccl.rank(), nccl.size());
  }
  nccl.exchange([&](int) { return own; }, part, stream);
}

// Rows of this rank's part and of the others' parts side by side; grid (rows, ranks).
__global__ void __launch_bounds__(kThreads)
    place_columns_kernel(GatherColumnsArgs args, const char* inbox, int first_row, int own,
                         int size) {
  wait_for_previous();
  const int rows = live_rows(args.counts, RowKind::kLogits, args.row_offset, args.max_rows);
  const int row = first_row + static_cast<int>(blockIdx.x);
  if (row >= rows) return;
  const int rank = static_cast<int>(blockIdx.y);
  const ColumnPart part = column_part(args.cols, rank, size);
  const float* from = rank == own ? args.part + int64_t{row} * part.count
                                  : reinterpret_cast<const float*>(inbox + rank * kNcclPieceBytes) +
                                        int64_t{blockIdx.x} * part.count;
  float* to = args.out + int64_t{row} * args.cols + part.begin;
  for (int col = threadIdx.x; col < part.count; col += kThreads) to[col] = from[col];
}

__global__ void __launch_bounds__(kThreads)
    best_keys_kernel(GatherArgmaxArgs args, const uint64_t* keys, int size) {
  wait_for_previous();
  const int rows = live_rows(args.counts, RowKind::kLogits, 0, args.max_rows);
  const int row = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (row >= rows) return;
  uint64_t best = 0;
  for (int rank = 0; rank < size; ++rank) best = max(best, keys[rank * args.max_rows + row]);
  const int32_t id = row_of_argmax_key(best);
  args.ids[row] = best == 0 ? -1 : args.id_map == nullptr ? id : args.id_map[id];
}

}  // namespace

void nccl_all_reduce(const AllReduceArgs& args, NcclExchange& nccl, cudaStream_t stream) {
  const int64_t count = (int64_t{args.max_rows} * args.cols + 3) / 4;
  const int64_t piece = kPieceVectors * nccl.size();
  for (int64_t begin = 0; begin < count; begin += piece) {
    const int64_t here = std::min(count - begin, piece);
    auto* x = reinterpret_cast<float4*>(args.x) + begin;
    if (here * kVectorBytes <= kOneExchangeBytes) {
      sum_at_once(x, here, nccl, stream);
    } else {
      sum_by_parts(x, here, nccl, stream);
    }
  }
}

void nccl_gather_columns(const GatherColumnsArgs& args, NcclExchange& nccl, cudaStream_t stream) {
  const int64_t widest =
      int64_t{widest_column_part(args.cols, nccl.size())} * int64_t{sizeof(float)};
  const int piece = static_cast<int>(kNcclPieceBytes / widest);
  const auto row_bytes = [&](int rank) {
    return int64_t{column_part(args.cols, rank, nccl.size()).count} * int64_t{sizeof(float)};
  };
  const int64_t own = row_bytes(nccl.rank());
  auto* part = reinterpret_cast<char*>(const_cast<float*>(args.part));
  for (int first = 0; first < args.max_rows; first += piece) {
    const int rows = std::min(args.max_rows - first, piece);
    nccl.exchange([&](int) { return Message{part + first * own, rows * own}; },
                  [&](int peer) { return Message{nccl.inbox(peer), rows * row_bytes(peer)}; },
                  stream);
    launch_kernel(place_columns_kernel, dim3(rows, nccl.size()), kThreads, 0, stream, args,
                  static_cast<const char*>(nccl.inbox(0)), first, nccl.rank(), nccl.size());
  }
}

void nccl_gather_argmax(const GatherArgmaxArgs& args, NcclExchange& nccl, cudaStream_t stream) {
  nccl.all_gather(args.keys, nccl.inbox(0), args.max_rows * int64_t{sizeof(uint64_t)}, stream);
  launch_kernel(best_keys_kernel, ceil_div(args.max_rows, kThreads), kThreads, 0, stream, args,
                reinterpret_cast<const uint64_t*>(nccl.inbox(0)), nccl.size());
}

// All rows, since the host must know the size: those without processors are equal already.
void nccl_share_logits(const ShareLogitsArgs& args, NcclExchange& nccl, cudaStream_t stream) {
  const int64_t row_bytes = int64_t{args.vocab} * int64_t{sizeof(float)};
  nccl.broadcast(args.logits, args.max_rows * row_bytes, 0, stream);
}

}  // namespace foretoken::cuda
