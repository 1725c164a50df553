#include "kernels/comm/expert_exchange.h"

#include <algorithm>

#include "kernels/comm/cuda/comm_exchange.cuh"
#include "kernels/comm/cuda/expert_part.cuh"
#include "kernels/comm/cuda/nccl_ops.h"
#include "kernels/comm/cuda/rank_ops.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 512;
// The same on all ranks, as what each block brings is, which follows from the step's max_rows.
constexpr int kBlocks = 64;
static_assert(kBlocks <= kCommBlocks);

// Of what a rank gives all others in a round, a block brings so many vectors of rows and so many
// choices.
struct DispatchShare {
  int vectors;
  int choices;
  int64_t row_vectors;
  int top_k;

  __device__ bool has(int round, int longest) const {
    const int64_t blocks = int64_t{round} * gridDim.x;
    return blocks * vectors < longest * row_vectors || blocks * choices < int64_t{longest} * top_k;
  }
};

// What lies in a slot: how many rows the sender has in all, and its shares of these.
constexpr int kMaxVectors = 1536;
constexpr int kMaxChoices = 768;
constexpr int kMinChoices = 64;
constexpr int64_t kVectorBytes = sizeof(float4);
static_assert((kMaxVectors + 1) * kVectorBytes + 2 * kMaxChoices * 4 <= kCommBlockBytes);

template <class Bytes>  // char or const char
struct DispatchSlot {
  Bytes* at;

  __device__ auto* rows() const { return at; }
  __device__ auto* x() const { return at + kVectorBytes; }
  __device__ auto* ids() const { return x() + kMaxVectors * kVectorBytes; }
  __device__ auto* weights() const { return ids() + kMaxChoices * 4; }
};

// Elements [begin, begin + most) of a list of `length`, which lie in a slot from `slot` on.
template <class T>
__device__ void send_share(char* slot, const T* list, int64_t begin, int most, int64_t length) {
  for (int i = threadIdx.x; i < most && begin + i < length; i += kThreads) {
    reinterpret_cast<T*>(slot)[i] = list[begin + i];
  }
}
template <class T>
__device__ void place_share(T* to, const char* slot, int64_t begin, int most, int64_t length) {
  for (int i = threadIdx.x; i < most && begin + i < length; i += kThreads) {
    to[begin + i] = load_fresh(reinterpret_cast<const T*>(slot) + i);
  }
}
template <class T>
__device__ void keep_share(T* to, const T* list, int64_t begin, int most, int64_t length) {
  for (int i = threadIdx.x; i < most && begin + i < length; i += kThreads) {
    to[begin + i] = list[begin + i];
  }
}

// first[r]: the rows of all ranks before r, as their slots say. Every thread calls it.
__device__ void place_ranks(const BlockExchange& exchange, const CommView& comm, int live,
                            int* first) {
  const int rank = static_cast<int>(threadIdx.x);
  if (rank < comm.size) {
    const auto* told = reinterpret_cast<const uint32_t*>(exchange.received(rank));
    first[rank + 1] = rank == comm.rank ? live : static_cast<int>(load_fresh(told));
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    first[0] = 0;
    for (int r = 0; r < comm.size; ++r) first[r + 1] += first[r];
  }
  __syncthreads();
}

__device__ int max_rows_of(const int* first, int size) {
  int most = 0;
  for (int rank = 0; rank < size; ++rank) most = max(most, first[rank + 1] - first[rank]);
  return most;
}

// Counts, rows and choices go together, so that few rows take one exchange.
__global__ void __launch_bounds__(kThreads)
    dispatch_kernel(DispatchRowsArgs args, CommView comm, DispatchShare share) {
  __shared__ int first[kMaxRanks + 1];
  wait_to_exchange(comm);
  BlockExchange exchange(comm);
  const int live = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
  const auto* x = static_cast<const float4*>(args.x);
  const auto* ids = reinterpret_cast<const uint32_t*>(args.ids);
  const auto* weights = reinterpret_cast<const uint32_t*>(args.weights);
  int longest = 0;
  for (int round = 0; round == 0 || share.has(round, longest); ++round) {
    const int64_t block = int64_t{round} * gridDim.x + blockIdx.x;
    const int64_t vector = block * share.vectors, choice = block * share.choices;
    exchange.send([&](char* to) {
      const DispatchSlot<char> slot{to};
      if (threadIdx.x == 0) *reinterpret_cast<uint32_t*>(slot.rows()) = static_cast<uint32_t>(live);
      send_share(slot.x(), x, vector, share.vectors, live * share.row_vectors);
      send_share(slot.ids(), ids, choice, share.choices, int64_t{live} * share.top_k);
      send_share(slot.weights(), weights, choice, share.choices, int64_t{live} * share.top_k);
    });
    if (round == 0) {
      place_ranks(exchange, comm, live, first);
      longest = max_rows_of(first, comm.size);
    }
    for (int rank = 0; rank < comm.size; ++rank) {
      const int64_t rows = first[rank + 1] - first[rank];
      auto* to_x = static_cast<float4*>(args.out.x) + first[rank] * share.row_vectors;
      auto* to_ids = reinterpret_cast<uint32_t*>(args.out.ids) + int64_t{first[rank]} * share.top_k;
      auto* to_weights =
          reinterpret_cast<uint32_t*>(args.out.weights) + int64_t{first[rank]} * share.top_k;
      if (rank == comm.rank) {
        keep_share(to_x, x, vector, share.vectors, rows * share.row_vectors);
        keep_share(to_ids, ids, choice, share.choices, rows * share.top_k);
        keep_share(to_weights, weights, choice, share.choices, rows * share.top_k);
        continue;
      }
      const DispatchSlot<const char> slot{exchange.received(rank)};
      place_share(to_x, slot.x(), vector, share.vectors, rows * share.row_vectors);
      place_share(to_ids, slot.ids(), choice, share.choices, rows * share.top_k);
      place_share(to_weights, slot.weights(), choice, share.choices, rows * share.top_k);
    }
    __syncthreads();
  }
  exchange.end();
  if (blockIdx.x > 0 || threadIdx.x > 0) return;
  for (int rank = 0; rank <= comm.size; ++rank) args.out.begins[rank] = first[rank];
  *args.out.counts = {first[comm.size], 0, 0, 0};
}

// Vectors that a block brings in a round of a return, and how many rounds the longest of the ranks'
// lists takes.
struct ReturnPieces {
  int size;
  int64_t longest;

  __device__ int64_t begin(int round) const {
    return (int64_t{round} * gridDim.x + blockIdx.x) * size;
  }
  __device__ bool has(int round) const { return int64_t{round} * gridDim.x * size < longest; }
};

__global__ void __launch_bounds__(kThreads)
    return_kernel(ReturnRowsArgs args, CommView comm, int piece) {
  wait_to_exchange(comm);
  const int* first = args.begins;
  const int64_t width = args.hidden / 4;
  const auto* sums = reinterpret_cast<const float4*>(args.sums);
  auto* out = reinterpret_cast<float4*>(args.out);
  const auto length = [&](int rank) { return (first[rank + 1] - first[rank]) * width; };
  const ReturnPieces pieces{piece, max_rows_of(first, comm.size) * width};
  BlockExchange exchange(comm);
  for (int round = 0; pieces.has(round); ++round) {
    const int64_t begin = pieces.begin(round);
    exchange.send_each([&](int peer, char* slot) {
      for (int i = threadIdx.x; i < pieces.size && begin + i < length(peer); i += kThreads) {
        reinterpret_cast<float4*>(slot)[i] = sums[first[peer] * width + begin + i];
      }
    });
    for (int i = threadIdx.x; i < pieces.size && begin + i < length(comm.rank); i += kThreads) {
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

// The least number of elements a block that brings `count` in one round, `unit` times a number.
int share_of(int64_t count, int blocks, int unit, int most) {
  const int64_t each = (count + int64_t{blocks} * unit - 1) / (int64_t{blocks} * unit) * unit;
  return static_cast<int>(std::min<int64_t>(std::max<int64_t>(each, unit), most));
}

}  // namespace

void launch_dispatch_rows(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<DispatchRowsArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.comm)) return nccl_dispatch_rows(args, *nccl, stream);
  const CommView& comm = peers_of(args.comm);
  const int blocks = comm.max_blocks(kBlocks);
  const int64_t row_vectors =
      int64_t{args.hidden} * (args.dtype == DType::kBF16 ? 2 : 4) / kVectorBytes;
  const DispatchShare share = {
      share_of(args.max_rows * row_vectors, blocks, kThreads, kMaxVectors),
      share_of(int64_t{args.max_rows} * args.top_k, blocks, kMinChoices, kMaxChoices), row_vectors,
      args.top_k};
  launch_kernel(dispatch_kernel, blocks, kThreads, 0, stream, args, comm, share);
}

void launch_return_rows(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ReturnRowsArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.comm)) return nccl_return_rows(args, *nccl, stream);
  const CommView& comm = peers_of(args.comm);
  const int blocks = comm.max_blocks(kBlocks);
  const int piece = share_of(int64_t{args.max_rows} * args.hidden / 4, blocks, kThreads,
                             static_cast<int>(kCommBlockBytes / kVectorBytes));
  launch_kernel(return_kernel, blocks, kThreads, 0, stream, args, comm, piece);
}

}  // namespace foretoken::cuda
