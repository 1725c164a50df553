#include <algorithm>

#include "kernels/comm/cuda/nccl_ops.h"
#include "kernels/cuda/common.cuh"

namespace foretoken::cuda {
namespace {

using Message = NcclExchange::Message;

constexpr int kThreads = 256;

// Columns of this rank's rows from every rank; grid (rows, ranks).
__global__ void __launch_bounds__(kThreads)
    place_dealt_kernel(DealLogitsArgs args, const char* inbox, int first_row) {
  wait_for_previous();
  const SharedLogits& a = args.of;
  const int rank = static_cast<int>(blockIdx.y);
  const ColumnPart part = column_part(a.vocab, rank, a.size);
  const int64_t row = first_row + int64_t{blockIdx.x};
  const float* from = rank == a.rank
                          ? a.part + (int64_t{rank} * a.rows_each() + row) * part.count
                          : reinterpret_cast<const float*>(inbox + rank * kNcclPieceBytes) +
                                int64_t{blockIdx.x} * part.count;
  float* to = a.dealt + row * a.vocab + part.begin;
  for (int col = threadIdx.x; col < part.count; col += kThreads) to[col] = from[col];
}

__global__ void __launch_bounds__(kThreads)
    best_samples_kernel(GatherSamplesArgs args, const uint64_t* keys) {
  wait_for_previous();
  const SharedLogits& a = args.of;
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i >= live_rows(a.tensors.counts, RowKind::kLogits, a.row_offset, a.max_rows)) return;
  uint64_t best = 0;
  for (int rank = 0; rank < a.size; ++rank) best = max(best, keys[rank * a.max_rows + i]);
  a.tensors.sampled[a.row_offset + i] = sampled_of(a, i, best);
}

}  // namespace

// Whether rows are drawn is known to the devices alone, so that they always are dealt out.
void nccl_deal_logits(const DealLogitsArgs& args, NcclExchange& nccl, cudaStream_t stream) {
  const SharedLogits& a = args.of;
  const auto columns = [&](int rank) { return int64_t{column_part(a.vocab, rank, a.size).count}; };
  const int64_t widest = int64_t{widest_column_part(a.vocab, a.size)} * int64_t{sizeof(float)};
  const int piece = static_cast<int>(kNcclPieceBytes / widest);
  const int64_t own = columns(a.rank);
  for (int first = 0; first < a.rows_each(); first += piece) {
    const auto rows = [&](int rank) {
      return std::clamp(a.rows_of(rank, a.max_rows) - first, 0, piece);
    };
    const auto part_of = [&](int peer) {
      return const_cast<float*>(a.part) + (int64_t{peer} * a.rows_each() + first) * own;
    };
    const int mine = rows(a.rank);
    nccl.exchange(
        [&](int peer) { return Message{part_of(peer), rows(peer) * own * int64_t{sizeof(float)}}; },
        [&](int peer) {
          return Message{nccl.inbox(peer), mine * columns(peer) * int64_t{sizeof(float)}};
        },
        stream);
    if (mine == 0) continue;
    launch_kernel(place_dealt_kernel, dim3(mine, a.size), kThreads, 0, stream, args,
                  static_cast<const char*>(nccl.inbox(0)), first);
  }
}

void nccl_gather_samples(const GatherSamplesArgs& args, NcclExchange& nccl, cudaStream_t stream) {
  const SharedLogits& a = args.of;
  nccl.all_gather(a.keys, nccl.inbox(0), a.max_rows * int64_t{sizeof(uint64_t)}, stream);
  launch_kernel(best_samples_kernel, ceil_div(a.max_rows, kThreads), kThreads, 0, stream, args,
                reinterpret_cast<const uint64_t*>(nccl.inbox(0)));
}

}  // namespace foretoken::cuda
