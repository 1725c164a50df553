#include "kernels/comm/shared_sampling.h"

#include <algorithm>

#include "kernels/comm/cuda/column_vectors.cuh"
#include "kernels/comm/cuda/comm_exchange.cuh"
#include "kernels/comm/cuda/nccl_ops.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/sampling/cuda/sample_row.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kVectors = 4;  // of 4 floats that a thread gives a peer at once
constexpr int kPiece = kThreads * kVectors;
static_assert(kPiece * int64_t{sizeof(float4)} <= kCommBlockBytes);
constexpr int kLongPart = 4096;  // columns from which on several blocks look at a row

__device__ int live_logits(const SharedLogits& a) {
  return live_rows(a.tensors.counts, RowKind::kLogits, a.row_offset, a.max_rows);
}

// Whether some row is drawn; every thread of the block calls it.
__device__ bool draws(const SharedLogits& a, int rows) {
  int drawn = 0;
  for (int i = threadIdx.x; i < rows; i += static_cast<int>(blockDim.x)) {
    drawn |= takes_likeliest(a, i) ? 0 : 1;
  }
  return __syncthreads_or(drawn) != 0;
}

// A vector of a part of `width` columns, the widest of any rank, rounded up.
struct PartVector {
  int row;
  int column;

  __device__ PartVector(int64_t at, int width)
      : row(static_cast<int>(at / (width / 4))), column(static_cast<int>(at % (width / 4)) * 4) {}
};

// Each block gives every other rank pieces of that one's rows, and puts its own together.
__global__ void __launch_bounds__(kThreads)
    deal_logits_kernel(DealLogitsArgs args, CommView comm, int width) {
  wait_to_exchange(comm);
  const SharedLogits& a = args.of;
  const int live = live_logits(a);
  if (!draws(a, live)) return;
  const ColumnPart own = column_part(a.vocab, a.rank, a.size);
  const auto count_of = [&](int rank) { return int64_t{a.rows_of(rank, live)} * (width / 4); };
  const auto read = [&](int rank, const PartVector& v) {
    const int64_t row = int64_t{rank} * a.rows_each() + v.row;
    return read_columns(a.part + row * own.count, v.column, own.count);
  };
  BlockExchange exchange(comm);
  for (int64_t begin = int64_t{blockIdx.x} * kPiece; begin < count_of(0);
       begin += int64_t{gridDim.x} * kPiece) {
    exchange.send_each([&](int peer, char* slot) {
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        const int place = i * kThreads + static_cast<int>(threadIdx.x);
        if (begin + place >= count_of(peer)) continue;
        reinterpret_cast<float4*>(slot)[place] = read(peer, PartVector(begin + place, width));
      }
    });
    for (int rank = 0; rank < comm.size; ++rank) {
      const ColumnPart part = column_part(a.vocab, rank, a.size);
      const auto* slot = reinterpret_cast<const float4*>(exchange.received(rank));
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        const int place = i * kThreads + static_cast<int>(threadIdx.x);
        if (begin + place >= count_of(a.rank)) continue;
        const PartVector v(begin + place, width);
        const float4 value = rank == comm.rank ? read(rank, v) : load_fresh(slot + place);
        copy_columns(value, a.dealt + int64_t{v.row} * a.vocab + part.begin, v.column, part.count);
      }
    }
    __syncthreads();
  }
  exchange.end();
}

// A row of this rank's columns, or a whole one.
struct PartRow {
  const float* logits;
  int first_id;
  int count;
};

// A team of Size blocks: row blockIdx.x / Size, of all rows or of those that were dealt to this
// rank.
template <int Size>
__global__ void __launch_bounds__(kTeamThreads) sample_parts_kernel(SamplePartsArgs args) {
  __shared__ TeamShared shared;
  __shared__ int32_t stop_ids[kMaxStopIds];
  wait_for_previous();
  let_next_start();
  const SharedLogits& a = args.of;
  const int live = live_logits(a);
  const bool drawn = draws(a, live);
  const int at_team = static_cast<int>(blockIdx.x) / Size;
  const int first_dealt = a.rank * a.rows_each();
  const int num_dealt = a.rows_of(a.rank, live);
  const bool writes = threadIdx.x == 0 && Team<Size>::rank() == 0;
  const bool is_others = at_team < first_dealt || at_team >= first_dealt + num_dealt;
  if (drawn && writes && at_team < live && is_others) a.keys[at_team] = 0;
  if (at_team >= (drawn ? num_dealt : live)) return;
  const int row = drawn ? first_dealt + at_team : at_team;
  const LogitsRow at = logits_row(a.tensors, a.batch.slots, a.row_offset + row);
  const ColumnPart own = column_part(a.vocab, a.rank, a.size);
  const PartRow from = drawn ? PartRow{a.dealt + int64_t{at_team} * a.vocab, 0, a.vocab}
                             : PartRow{a.part + int64_t{row} * own.count, own.begin, own.count};
  const SlotParams& params = a.batch.params[at.slot];
  if (threadIdx.x < kMaxStopIds)
    stop_ids[threadIdx.x] = params.stop_ids[threadIdx.x] - from.first_id;
  __syncthreads();
  const int position = at.position + 1;
  const MaskedRow masked{from.logits, stop_ids, position < params.min_len ? params.num_stop_ids : 0,
                         from.count};
  const Team<Size> team(shared);
  const uint64_t key = drawn ? drawn_key(sample_row<Size>(masked, params, position, team))
                             : likeliest_key<Size>(masked, from.first_id, team);
  if (writes) a.keys[row] = key;
}

// One block.
__global__ void __launch_bounds__(kThreads)
    gather_samples_kernel(GatherSamplesArgs args, CommView comm) {
  wait_to_exchange(comm);
  const SharedLogits& a = args.of;
  const int live = live_logits(a);
  BlockExchange exchange(comm);
  for (int begin = 0; begin < live; begin += kThreads) {
    const int i = begin + static_cast<int>(threadIdx.x);
    uint64_t best = i < live ? a.keys[i] : 0;
    exchange.send([&](char* slot) { reinterpret_cast<uint64_t*>(slot)[threadIdx.x] = best; });
    for (int rank = 0; rank < comm.size; ++rank) {
      if (rank == comm.rank) continue;
      const auto* slot = reinterpret_cast<const uint64_t*>(exchange.received(rank));
      best = max(best, load_fresh(slot + threadIdx.x));
    }
    if (i < live) a.tensors.sampled[a.row_offset + i] = sampled_of(a, i, best);
    __syncthreads();
  }
  exchange.end();
}

template <int Size>
void launch_parts(const SamplePartsArgs& args, cudaStream_t stream) {
  launch_cluster(sample_parts_kernel<Size>, args.of.max_rows * Size, Size, kTeamThreads, 0, stream,
                 args);
}

}  // namespace

void launch_deal_logits(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<DealLogitsArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.of.comm)) return nccl_deal_logits(args, *nccl, stream);
  const CommView& comm = peers_of(args.of.comm);
  const int width = (widest_column_part(args.of.vocab, comm.size) + 3) / 4 * 4;
  const int64_t vectors = int64_t{args.of.rows_each()} * (width / 4);
  const int blocks =
      static_cast<int>(std::min<int64_t>(ceil_div(vectors, kPiece), comm.max_blocks(kCommBlocks)));
  launch_kernel(deal_logits_kernel, blocks, kThreads, 0, stream, args, comm, width);
}

// As many blocks a row as the device runs at once where rows are dealt out.
void launch_sample_parts(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<SamplePartsArgs>(packed);
  const int rows = args.of.rows_each();
  const bool clusters = device_traits().clusters && args.of.vocab >= kLongPart * args.of.size;
  if (clusters && rows <= 24) return launch_parts<4>(args, stream);
  if (clusters && rows <= 64) return launch_parts<2>(args, stream);
  launch_parts<1>(args, stream);
}

void launch_gather_samples(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<GatherSamplesArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.of.comm)) return nccl_gather_samples(args, *nccl, stream);
  launch_kernel(gather_samples_kernel, 1, kThreads, 0, stream, args, peers_of(args.of.comm));
}

}  // namespace foretoken::cuda
