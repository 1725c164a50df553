#include "kernels/comm/context_exchange.h"

#include "kernels/attention/attention.h"
#include "kernels/comm/cuda/comm_exchange.cuh"
#include "kernels/comm/cuda/context_merge.cuh"
#include "kernels/comm/cuda/nccl_ops.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kBlocks = 64;
static_assert(kBlocks <= kCommBlocks);
constexpr int kSlotWords = static_cast<int>(kCommBlockBytes / 4);

// Each block brings runs of words of the live rows, as they lie on their ranks.
__global__ void __launch_bounds__(kThreads)
    gather_parts_kernel(GatherPartsArgs args, CommView comm) {
  wait_to_exchange(comm);
  const int rows = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
  const int piece = args.piece_bytes / 4;
  const int width = args.pieces * piece;
  const int64_t count = int64_t{rows} * width;
  const auto* in = static_cast<const uint32_t*>(args.in);
  auto* out = static_cast<uint32_t*>(args.out);
  const auto own = [&](int64_t at) {
    const int64_t row = at / width;
    return in[(args.from == nullptr ? row : args.from[row]) * width + at % width];
  };
  BlockExchange exchange(comm);
  for (int64_t begin = int64_t{blockIdx.x} * kSlotWords; begin < count;
       begin += int64_t{gridDim.x} * kSlotWords) {
    exchange.send_each([&](int peer, char* slot) {
      if (place_in_group(args.ranks, peer) < 0) return;
      for (int i = threadIdx.x; i < kSlotWords && begin + i < count; i += kThreads) {
        reinterpret_cast<uint32_t*>(slot)[i] = own(begin + i);
      }
    });
    for (int rank = 0; rank < args.ranks.size; ++rank) {
      const auto* slot =
          reinterpret_cast<const uint32_t*>(exchange.received(args.ranks.first + rank));
      for (int i = threadIdx.x; i < kSlotWords && begin + i < count; i += kThreads) {
        const int64_t at = begin + i;
        const int64_t to = (at / piece * args.ranks.size + rank) * piece + at % piece;
        out[to] = rank == args.ranks.rank ? own(at) : load_fresh(slot + i);
      }
    }
    __syncthreads();
  }
  exchange.end();
}

__device__ float load_float(const float* from) {
  return __uint_as_float(load_fresh(reinterpret_cast<const uint32_t*>(from)));
}

// Each block brings runs of whole states.
__global__ void __launch_bounds__(kThreads)
    merge_partials_kernel(MergePartialsArgs args, CommView comm) {
  wait_to_exchange(comm);
  const int rows = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
  const int size = attention_state_size(args.value_size);
  const int at_once = kSlotWords / size;
  const int64_t count = int64_t{rows} * args.num_heads;
  const auto states_for = [&](int rank, int64_t begin) {
    return args.states + (int64_t{rank} * args.max_rows * args.num_heads + begin) * size;
  };
  BlockExchange exchange(comm);
  for (int64_t begin = int64_t{blockIdx.x} * at_once; begin < count;
       begin += int64_t{gridDim.x} * at_once) {
    const int here = static_cast<int>(count - begin < at_once ? count - begin : at_once);
    exchange.send_each([&](int peer, char* slot) {
      const int place = place_in_group(args.ranks, peer);
      if (place < 0) return;
      const float* from = states_for(place, begin);
      for (int i = threadIdx.x; i < here * size; i += kThreads) {
        reinterpret_cast<float*>(slot)[i] = from[i];
      }
    });
    for (int i = threadIdx.x; i < here * args.value_size; i += kThreads) {
      const int64_t state = i / args.value_size;
      const auto part = [&](int rank, int at) {
        if (rank == args.ranks.rank) return states_for(rank, begin)[state * size + at];
        const char* slot = exchange.received(args.ranks.first + rank);
        return load_float(reinterpret_cast<const float*>(slot) + state * size + at);
      };
      const int d = i % args.value_size;
      const int head = static_cast<int>((begin + state) % args.num_heads);
      store_merged(args, (begin + state) * args.value_size + d,
                   merged_element(args, head, d, part));
    }
    __syncthreads();
  }
  exchange.end();
}

}  // namespace

void launch_gather_parts(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<GatherPartsArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.ranks.comm)) return nccl_gather_parts(args, *nccl, stream);
  const CommView& comm = peers_of(args.ranks.comm);
  launch_kernel(gather_parts_kernel, comm.max_blocks(kBlocks), kThreads, 0, stream, args, comm);
}

void launch_merge_partials(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<MergePartialsArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.ranks.comm))
    return nccl_merge_partials(args, *nccl, stream);
  const CommView& comm = peers_of(args.ranks.comm);
  launch_kernel(merge_partials_kernel, comm.max_blocks(kBlocks), kThreads, 0, stream, args, comm);
}

}  // namespace foretoken::cuda
