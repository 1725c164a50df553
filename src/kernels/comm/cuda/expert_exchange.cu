#include "kernels/comm/expert_exchange.h"

#include "kernels/comm/cuda/comm_exchange.cuh"
#include "kernels/comm/cuda/expert_part.cuh"
#include "kernels/comm/cuda/nccl_ops.h"
#include "kernels/comm/cuda/rank_ops.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 512;
// The same on all ranks, whose steps may have other bounds.
constexpr int kBlocks = 64;
static_assert(kBlocks <= kCommBlocks);

// Elements of a list that its blocks bring in one exchange each, and how many exchanges that takes
// for the longest of the ranks' lists.
template <class T>
struct Pieces {
  static constexpr int kSize = static_cast<int>(kCommBlockBytes / static_cast<int64_t>(sizeof(T)));
  int64_t longest;

  __device__ int64_t begin(int round) const {
    return (int64_t{round} * gridDim.x + blockIdx.x) * kSize;
  }
  __device__ bool has(int round) const { return int64_t{round} * gridDim.x * kSize < longest; }
};

// first[r]: the rows of all ranks before r, from how many each of them has. Every thread calls it.
__device__ void exchange_counts(BlockExchange& exchange, const CommView& comm, int rows,
                                int* first) {
  exchange.send([&](char* slot) {
    if (threadIdx.x == 0) *reinterpret_cast<uint32_t*>(slot) = static_cast<uint32_t>(rows);
  });
  if (threadIdx.x == 0) {
    first[0] = 0;
    for (int rank = 0; rank < comm.size; ++rank) {
      const auto* told = reinterpret_cast<const uint32_t*>(exchange.received(rank));
      first[rank + 1] =
          first[rank] + (rank == comm.rank ? rows : static_cast<int>(load_fresh(told)));
    }
  }
  __syncthreads();
}

__device__ int max_rows_of(const int* first, int size) {
  int most = 0;
  for (int rank = 0; rank < size; ++rank) most = max(most, first[rank + 1] - first[rank]);
  return most;
}

// Rows of `width` elements from every rank to their places in `to`.
template <class T>
__device__ void bring_rows(BlockExchange& exchange, const CommView& comm, const int* first,
                           const T* from, T* to, int64_t width) {
  const Pieces<T> pieces{max_rows_of(first, comm.size) * width};
  const auto length = [&](int rank) { return (first[rank + 1] - first[rank]) * width; };
  for (int round = 0; pieces.has(round); ++round) {
    const int64_t begin = pieces.begin(round);
    exchange.send([&](char* slot) {
      for (int i = threadIdx.x; i < pieces.kSize && begin + i < length(comm.rank); i += kThreads) {
        reinterpret_cast<T*>(slot)[i] = from[begin + i];
      }
    });
    for (int rank = 0; rank < comm.size; ++rank) {
      const auto* slot = reinterpret_cast<const T*>(exchange.received(rank));
      for (int i = threadIdx.x; i < pieces.kSize && begin + i < length(rank); i += kThreads) {
        to[first[rank] * width + begin + i] =
            rank == comm.rank ? from[begin + i] : load_fresh(slot + i);
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads) dispatch_kernel(DispatchRowsArgs args, CommView comm) {
  __shared__ int first[kMaxRanks + 1];
  wait_to_exchange(comm);
  BlockExchange exchange(comm);
  exchange_counts(exchange, comm, live_rows(args.counts, RowKind::kToken, 0, args.max_rows), first);
  const int64_t row_bytes = int64_t{args.hidden} * (args.dtype == DType::kBF16 ? 2 : 4);
  bring_rows(exchange, comm, first, static_cast<const float4*>(args.x),
             static_cast<float4*>(args.out.x), row_bytes / static_cast<int64_t>(sizeof(float4)));
  bring_rows(exchange, comm, first, reinterpret_cast<const uint32_t*>(args.ids),
             reinterpret_cast<uint32_t*>(args.out.ids), args.top_k);
  bring_rows(exchange, comm, first, reinterpret_cast<const uint32_t*>(args.weights),
             reinterpret_cast<uint32_t*>(args.out.weights), args.top_k);
  exchange.end();
  if (blockIdx.x > 0 || threadIdx.x > 0) return;
  for (int rank = 0; rank <= comm.size; ++rank) args.out.begins[rank] = first[rank];
  *args.out.counts = {first[comm.size], 0, 0, 0};
}

__global__ void __launch_bounds__(kThreads) return_kernel(ReturnRowsArgs args, CommView comm) {
  wait_to_exchange(comm);
  const int* first = args.begins;
  const int64_t width = args.hidden / 4;
  const auto* sums = reinterpret_cast<const float4*>(args.sums);
  auto* out = reinterpret_cast<float4*>(args.out);
  const auto length = [&](int rank) { return (first[rank + 1] - first[rank]) * width; };
  const Pieces<float4> pieces{max_rows_of(first, comm.size) * width};
  BlockExchange exchange(comm);
  for (int round = 0; pieces.has(round); ++round) {
    const int64_t begin = pieces.begin(round);
    exchange.send_each([&](int peer, char* slot) {
      for (int i = threadIdx.x; i < pieces.kSize && begin + i < length(peer); i += kThreads) {
        reinterpret_cast<float4*>(slot)[i] = sums[first[peer] * width + begin + i];
      }
    });
    for (int i = threadIdx.x; i < pieces.kSize && begin + i < length(comm.rank); i += kThreads) {
      const int64_t at = begin + i;
      float4 sum = shared_part(args, at);
      for (int rank = 0; rank < comm.size; ++rank) {
        const auto* slot = reinterpret_cast<const float4*>(exchange.received(rank));
        sum =
            sum_of(sum, rank == comm.rank ? sums[first[rank] * width + at] : load_fresh(slot + i));
      }
      out[at] = args.add != 0 ? sum_of(out[at], sum) : sum;
    }
  }
  exchange.end();
}

}  // namespace

void launch_dispatch_rows(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<DispatchRowsArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.comm)) return nccl_dispatch_rows(args, *nccl, stream);
  const CommView& comm = peers_of(args.comm);
  launch_kernel(dispatch_kernel, comm.max_blocks(kBlocks), kThreads, 0, stream, args, comm);
}

void launch_return_rows(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ReturnRowsArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.comm)) return nccl_return_rows(args, *nccl, stream);
  const CommView& comm = peers_of(args.comm);
  launch_kernel(return_kernel, comm.max_blocks(kBlocks), kThreads, 0, stream, args, comm);
}

}  // namespace foretoken::cuda
