#include "kernels/comm/collectives.h"

#include <algorithm>

#include "kernels/comm/cuda/column_vectors.cuh"
#include "kernels/comm/cuda/comm_exchange.cuh"
#include "kernels/comm/cuda/nccl_ops.h"
#include "kernels/comm/cuda/rank_ops.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/draft_entries.h"
#include "kernels/logits_row.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kVectors = 4;  // of 4 floats a thread at once, at most
constexpr int kMaxFloats = kThreads * kVectors * 4;
static_assert(kMaxFloats * int64_t{sizeof(float)} <= kCommBlockBytes);

// Beyond it two exchanges of parts take less time than one of everything, with three ranks or more.
constexpr int64_t kMaxFloatsAtOnce = 32 * 4096;

// Blocks and vectors a thread, so that few elements are spread over many blocks.
struct Spread {
  int blocks;
  int vectors;
};
Spread spread_over_blocks(const CommView& comm, int64_t floats) {
  constexpr int64_t kLeast = kThreads * 4;
  const int most = comm.max_blocks(kCommBlocks);
  int vectors = 1;
  while (vectors < kVectors && floats > kLeast * vectors * most) vectors *= 2;
  const int64_t pieces = (floats + kLeast * vectors - 1) / (kLeast * vectors);
  return {static_cast<int>(pieces < most ? pieces : most), vectors};
}

// The thread's vectors of the piece that begins at vector `begin` of `count`.
template <int Vectors>
__device__ void push_piece(const float4 (&own)[Vectors], int64_t begin, int64_t count, char* slot) {
#pragma unroll
  for (int v = 0; v < Vectors; ++v) {
    const int i = v * kThreads + static_cast<int>(threadIdx.x);
    if (begin + i < count) reinterpret_cast<float4*>(slot)[i] = own[v];
  }
}

template <int Vectors>
__device__ void read_piece(const float4* x, int64_t begin, int64_t count, float4 (&own)[Vectors]) {
#pragma unroll
  for (int v = 0; v < Vectors; ++v) {
    const int64_t at = begin + v * kThreads + threadIdx.x;
    if (at < count) own[v] = x[at];
  }
}

// Of this rank's vector and those that the others sent, in the order of ranks.
__device__ float4 sum_of_ranks(const float4& own, const BlockExchange& exchange,
                               const CommView& comm, int i) {
  float4 sum{};
  for (int rank = 0; rank < comm.size; ++rank) {
    const auto* slot = reinterpret_cast<const float4*>(exchange.received(rank));
    const float4 part = rank == comm.rank ? own : load_fresh(slot + i);
    sum = rank == 0 ? part : sum_of(sum, part);
  }
  return sum;
}

// Each block has pieces of the rows; every rank gives its piece to all others and adds all of them
// in the order of ranks.
template <int Vectors>
__global__ void __launch_bounds__(kThreads) all_reduce_kernel(AllReduceArgs args, CommView comm) {
  wait_to_exchange(comm);
  const int rows = live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows);
  const int64_t count = (int64_t{rows} * args.cols + 3) / 4;
  constexpr int kPiece = kThreads * Vectors;
  BlockExchange exchange(comm);
  auto* x = reinterpret_cast<float4*>(args.x);
  for (int64_t begin = int64_t{blockIdx.x} * kPiece; begin < count;
       begin += int64_t{gridDim.x} * kPiece) {
    float4 own[Vectors];
    read_piece(x, begin, count, own);
    exchange.send([&](char* slot) { push_piece(own, begin, count, slot); });
#pragma unroll
    for (int v = 0; v < Vectors; ++v) {
      const int64_t at = begin + v * kThreads + threadIdx.x;
      if (at >= count) continue;
      x[at] = sum_of_ranks(own[v], exchange, comm, v * kThreads + static_cast<int>(threadIdx.x));
    }
    __syncthreads();
  }
  exchange.end();
}

// The same for many rows: of each piece every rank sums a part and gives it to the others, so that
// a rank sends 2 (n - 1) / n of the bytes instead of n - 1 times them.
template <int Vectors>
__global__ void __launch_bounds__(kThreads)
    all_reduce_by_parts_kernel(AllReduceArgs args, CommView comm) {
  wait_to_exchange(comm);
  const int rows = live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows);
  const int64_t count = (int64_t{rows} * args.cols + 3) / 4;
  constexpr int kPart = kThreads * Vectors;
  const int64_t piece = int64_t{kPart} * comm.size;
  BlockExchange exchange(comm);
  auto* x = reinterpret_cast<float4*>(args.x);
  for (int64_t begin = int64_t{blockIdx.x} * piece; begin < count;
       begin += int64_t{gridDim.x} * piece) {
    exchange.send_each([&](int peer, char* slot) {
      float4 theirs[Vectors];
      const int64_t part = begin + int64_t{peer} * kPart;
      read_piece(x, part, count, theirs);
      push_piece(theirs, part, count, slot);
    });
    const int64_t own = begin + int64_t{comm.rank} * kPart;
    float4 sums[Vectors];
    read_piece(x, own, count, sums);
#pragma unroll
    for (int v = 0; v < Vectors; ++v) {
      const int i = v * kThreads + static_cast<int>(threadIdx.x);
      if (own + i >= count) continue;
      sums[v] = sum_of_ranks(sums[v], exchange, comm, i);
      x[own + i] = sums[v];
    }
    exchange.send([&](char* slot) { push_piece(sums, own, count, slot); });
    for (int rank = 0; rank < comm.size; ++rank) {
      if (rank == comm.rank) continue;
      const auto* slot = reinterpret_cast<const float4*>(exchange.received(rank));
      const int64_t part = begin + int64_t{rank} * kPart;
#pragma unroll
      for (int v = 0; v < Vectors; ++v) {
        const int i = v * kThreads + static_cast<int>(threadIdx.x);
        if (part + i < count) x[part + i] = load_fresh(slot + i);
      }
    }
    __syncthreads();
  }
  exchange.end();
}

// `width`: of the widest part, a multiple of 4.
template <int Vectors>
__global__ void __launch_bounds__(kThreads)
    gather_columns_kernel(GatherColumnsArgs args, CommView comm, int width) {
  wait_to_exchange(comm);
  const int rows = live_rows(args.counts, RowKind::kLogits, args.row_offset, args.max_rows);
  const int64_t count = int64_t{rows} * (width / 4);
  const ColumnPart part = column_part(args.cols, comm.rank, comm.size);
  constexpr int kPiece = kThreads * Vectors;
  BlockExchange exchange(comm);
  for (int64_t begin = int64_t{blockIdx.x} * kPiece; begin < count;
       begin += int64_t{gridDim.x} * kPiece) {
    float4 own[Vectors];
#pragma unroll
    for (int v = 0; v < Vectors; ++v) {
      const int64_t at = begin + v * kThreads + threadIdx.x;
      if (at >= count) continue;
      const int64_t row = at / (width / 4);
      const int col = static_cast<int>(at % (width / 4)) * 4;
      own[v] = read_columns(args.part + row * part.count, col, part.count);
      copy_columns(own[v], args.out + row * args.cols + part.begin, col, part.count);
    }
    exchange.send([&](char* slot) { push_piece(own, begin, count, slot); });
    for (int rank = 0; rank < comm.size; ++rank) {
      if (rank == comm.rank) continue;
      const ColumnPart other = column_part(args.cols, rank, comm.size);
      const auto* slot = reinterpret_cast<const float4*>(exchange.received(rank));
#pragma unroll
      for (int v = 0; v < Vectors; ++v) {
        const int64_t at = begin + v * kThreads + threadIdx.x;
        if (at >= count) continue;
        const int64_t row = at / (width / 4);
        const int col = static_cast<int>(at % (width / 4)) * 4;
        copy_columns(load_fresh(slot + v * kThreads + threadIdx.x),
                     args.out + row * args.cols + other.begin, col, other.count);
      }
    }
    __syncthreads();
  }
  exchange.end();
}

// One block.
__global__ void __launch_bounds__(kThreads)
    gather_argmax_kernel(GatherArgmaxArgs args, CommView comm) {
  wait_to_exchange(comm);
  const int rows = live_rows(args.counts, RowKind::kLogits, 0, args.max_rows);
  BlockExchange exchange(comm);
  for (int begin = 0; begin < rows; begin += kThreads) {
    const int row = begin + static_cast<int>(threadIdx.x);
    uint64_t best = row < rows ? args.keys[row] : 0;
    exchange.send([&](char* slot) { reinterpret_cast<uint64_t*>(slot)[threadIdx.x] = best; });
    for (int rank = 0; rank < comm.size; ++rank) {
      if (rank == comm.rank) continue;
      const auto* slot = reinterpret_cast<const uint64_t*>(exchange.received(rank));
      best = max(best, load_fresh(slot + threadIdx.x));
    }
    if (row < rows) {
      const int32_t id = row_of_argmax_key(best);
      args.ids[row] = best == 0 ? -1 : args.id_map == nullptr ? id : args.id_map[id];
    }
    __syncthreads();
  }
  exchange.end();
}

// One block: how many masks each span has.
__global__ void __launch_bounds__(kThreads)
    share_answers_kernel(ShareMasksArgs args, CommView comm) {
  wait_for_previous();
  let_next_start();
  BlockExchange exchange(comm);
  for (int begin = 0; begin < args.counts->num_spans; begin += kThreads) {
    const int i = begin + static_cast<int>(threadIdx.x);
    const bool wanted = i < args.counts->num_spans && has_masks(args, args.spans[i]);
    uint64_t word = wanted ? mask_counts(args.slots[args.spans[i].slot]) : 0;
    exchange.send([&](char* slot) { reinterpret_cast<uint64_t*>(slot)[threadIdx.x] = word; });
    if (comm.rank != 0 && wanted) {
      word = load_fresh(reinterpret_cast<const uint64_t*>(exchange.received(0)) + threadIdx.x);
      take_mask_counts(word, args.slots[args.spans[i].slot]);
    }
    __syncthreads();
  }
  exchange.end();
}

// A block takes every gridDim-th span and brings its rows over in pieces of a slot.
__global__ void __launch_bounds__(kThreads) share_rows_kernel(ShareMasksArgs args, CommView comm) {
  wait_for_previous();
  let_next_start();
  constexpr int64_t kPiece = kCommBlockBytes / int64_t{sizeof(uint32_t)};
  BlockExchange exchange(comm);
  for (int i = blockIdx.x; i < args.counts->num_spans; i += gridDim.x) {
    const SpanState span = args.spans[i];
    if (!has_masks(args, span)) continue;
    const SlotState& state = args.slots[span.slot];
    uint32_t* rows = args.masks + int64_t{state.mask_begin} * args.mask_words;
    const int64_t count = int64_t{state.num_masks} * args.mask_words;
    for (int64_t begin = 0; begin < count; begin += kPiece) {
      const int64_t here = count - begin < kPiece ? count - begin : kPiece;
      exchange.send([&](char* slot) {
        if (comm.rank != 0) return;
        for (int64_t w = threadIdx.x; w < here; w += kThreads) {
          reinterpret_cast<uint32_t*>(slot)[w] = __ldcv(rows + begin + w);
        }
      });
      if (comm.rank != 0) {
        const auto* slot = reinterpret_cast<const uint32_t*>(exchange.received(0));
        for (int64_t w = threadIdx.x; w < here; w += kThreads)
          rows[begin + w] = load_fresh(slot + w);
      }
      __syncthreads();
    }
  }
  exchange.end();
}

constexpr int kLogitsPiece = static_cast<int>(kCommBlockBytes / int64_t{sizeof(float)});

// A block takes every gridDim-th piece of the rows, each of at most a slot.
__global__ void __launch_bounds__(kThreads)
    share_logits_kernel(ShareLogitsArgs args, CommView comm) {
  wait_to_exchange(comm);
  const int rows = live_rows(args.tensors.counts, RowKind::kLogits, args.row_offset, args.max_rows);
  const int pieces = (args.vocab + kLogitsPiece - 1) / kLogitsPiece;
  BlockExchange exchange(comm);
  for (int i = blockIdx.x; i < rows * pieces; i += gridDim.x) {
    const LogitsRow at = logits_row(args.tensors, args.slots, args.row_offset + i / pieces);
    if (at.scored || args.params[at.slot].processors == 0) continue;
    const int begin = i % pieces * kLogitsPiece;
    const int here = min(args.vocab - begin, kLogitsPiece);
    float* logits = args.logits + int64_t{i / pieces} * args.vocab + begin;
    exchange.send([&](char* slot) {
      if (comm.rank != 0) return;
      for (int v = threadIdx.x; v < here; v += kThreads) {
        reinterpret_cast<float*>(slot)[v] = logits[v];
      }
    });
    if (comm.rank != 0) {
      const auto* slot = reinterpret_cast<const uint32_t*>(exchange.received(0));
      for (int v = threadIdx.x; v < here; v += kThreads) {
        logits[v] = __uint_as_float(load_fresh(slot + v));
      }
    }
    __syncthreads();
  }
  exchange.end();
}

template <class Launch>
void with_vectors(int vectors, const Launch& launch) {
  switch (vectors) {
    case 1:
      return launch(std::integral_constant<int, 1>());
    case 2:
      return launch(std::integral_constant<int, 2>());
    default:
      return launch(std::integral_constant<int, 4>());
  }
}

}  // namespace

void launch_all_reduce(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<AllReduceArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.comm)) return nccl_all_reduce(args, *nccl, stream);
  const CommView& comm = peers_of(args.comm);
  const int64_t floats = int64_t{args.max_rows} * args.cols;
  if (comm.size > 2 && floats > kMaxFloatsAtOnce) {
    const Spread spread = spread_over_blocks(comm, floats / comm.size);
    with_vectors(spread.vectors, [&](auto vectors) {
      launch_kernel(all_reduce_by_parts_kernel<vectors()>, spread.blocks, kThreads, 0, stream, args,
                    comm);
    });
    return;
  }
  const Spread spread = spread_over_blocks(comm, floats);
  with_vectors(spread.vectors, [&](auto vectors) {
    launch_kernel(all_reduce_kernel<vectors()>, spread.blocks, kThreads, 0, stream, args,
                  peers_of(args.comm));
  });
}

void launch_gather_columns(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<GatherColumnsArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.comm)) return nccl_gather_columns(args, *nccl, stream);
  const CommView& comm = peers_of(args.comm);
  const int width = (widest_column_part(args.cols, comm.size) + 3) / 4 * 4;
  const Spread spread = spread_over_blocks(comm, int64_t{args.max_rows} * width);
  with_vectors(spread.vectors, [&](auto vectors) {
    launch_kernel(gather_columns_kernel<vectors()>, spread.blocks, kThreads, 0, stream, args, comm,
                  width);
  });
}

void launch_gather_argmax(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<GatherArgmaxArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.comm)) return nccl_gather_argmax(args, *nccl, stream);
  launch_kernel(gather_argmax_kernel, 1, kThreads, 0, stream, args, peers_of(args.comm));
}

void launch_share_masks(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ShareMasksArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.comm)) return nccl_share_masks(args, *nccl, stream);
  launch_kernel(share_answers_kernel, 1, kThreads, 0, stream, args, peers_of(args.comm));
  launch_kernel(share_rows_kernel, kCommBlocks, kThreads, 0, stream, args, peers_of(args.comm));
}

void launch_share_logits(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ShareLogitsArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.comm)) return nccl_share_logits(args, *nccl, stream);
  const CommView& comm = peers_of(args.comm);
  const int pieces = args.max_rows * ((args.vocab + kLogitsPiece - 1) / kLogitsPiece);
  launch_kernel(share_logits_kernel, std::min(comm.max_blocks(kCommBlocks), pieces), kThreads, 0,
                stream, args, comm);
}

}  // namespace foretoken::cuda
