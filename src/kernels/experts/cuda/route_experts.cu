#include "kernels/experts/route_experts.h"

#include <algorithm>

#include "kernels/cuda/block_scan.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/experts/cuda/route_lists.cuh"
#include "kernels/experts/cuda/route_row.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kWarps = 4;  // a row each
constexpr int kListThreads = 256;
// Up to so many rows, choices and bytes of lists one cluster routes and lists; it may take as many
// bytes for its rows.
constexpr int kClusterRows = 256;
constexpr int kClusterBlocks = 8;
constexpr int kClusterWarps = 16;  // of a block at most: others have room beside it
constexpr int kClusterChoices = 8192;
constexpr int kClusterBytes = 96 << 10;

// What blocks of a cluster wrote to shared memory before they arrived is seen by those that waited.
__device__ void arrive_at_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
__device__ void wait_for_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// One cluster routes and lists. `memory` is for max_rows rows, at the same place of all blocks; the
// first block's is used.
template <int Each>
__global__ void __launch_bounds__(kClusterWarps * 32) route_cluster_kernel(RouteExpertsArgs args) {
  extern __shared__ __align__(16) uint32_t cluster_shared[];
  const int block = static_cast<int>(blockIdx.x);
  const int blocks = static_cast<int>(gridDim.x);
  const int threads = static_cast<int>(blockDim.x);
  const int thread = static_cast<int>(threadIdx.x);
  if (blocks > 1) arrive_at_cluster();
  wait_for_previous();
  const int top_k = args.lists.top_k;
  const int rows = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
  const int warps = threads / 32;
  uint32_t* own = cluster_shared + thread / 32 * route_words(args);
  const ListMemory memory(cluster_shared + warps * route_words(args),
                          int64_t{args.max_rows} * top_k, args.lists.count);
  if (blocks > 1) wait_for_cluster();  // the first block's memory is there
  int id = 0;
  for (int row = block * warps + thread / 32; row < args.max_rows; row += blocks * warps) {
    if (!route_row<Each>(args, row, rows, own, id)) break;
    if (thread % 32 >= top_k) continue;
    const int expert = id - args.first_expert;
    const int listed = expert >= 0 && expert < args.lists.count ? expert : -1;
    int16_t* place = memory.experts + row * top_k + thread % 32;
    if (blocks > 1) {
      store_at_first(place, listed);
    } else {
      *place = static_cast<int16_t>(listed);
    }
  }
  if (blocks > 1) {
    __syncwarp();
    arrive_at_cluster();
    wait_for_cluster();
    if (block > 0) return;
  }
  __syncthreads();
  list_choices(args, rows * top_k, memory);
}

template <int Each>
__global__ void __launch_bounds__(kWarps * 32) route_kernel(RouteExpertsArgs args) {
  extern __shared__ uint32_t route_shared[];
  wait_for_previous();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t row = int64_t{blockIdx.x} * kWarps + warp;
  if (row >= args.max_rows) return;
  const int rows = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
  int id = 0;
  route_row<Each>(args, row, rows, route_shared + warp * route_words(args), id);
}

// A block lists the entries of one expert, behind those of the experts before it, which it counts.
// A thread has choices that follow one another, so that entries ascend.
__global__ void __launch_bounds__(kListThreads) list_kernel(RouteExpertsArgs args) {
  __shared__ int scratch[kListThreads];
  wait_for_previous();
  const int rows = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
  const int choices = rows * args.lists.top_k;
  const int each = ceil_div(choices, kListThreads);
  const int begin = min(static_cast<int>(threadIdx.x) * each, choices);
  const int end = min(begin + each, choices);
  const int expert = static_cast<int>(blockIdx.x);
  int below = 0, own = 0;
  for (int i = begin; i < end; ++i) {
    const int chosen = args.ids[i] - args.first_expert;
    below += chosen >= 0 && chosen < expert ? 1 : 0;
    own += chosen == expert ? 1 : 0;
  }
  block_scan<kListThreads>(below, scratch);
  const int first = scratch[kListThreads - 1];
  int next = first + block_scan<kListThreads>(own, scratch) - own;
  const int last = first + scratch[kListThreads - 1];
  if (threadIdx.x == 0) {
    args.lists.begins[expert] = first;
    if (expert == args.lists.count - 1) args.lists.begins[expert + 1] = last;
  }
  for (int i = begin; i < end; ++i) {
    if (args.ids[i] - args.first_expert == expert) args.lists.entries[next++] = i;
  }
}

// False where one cluster has not the room, or the device no clusters.
bool launch_cluster_route(const RouteExpertsArgs& args, cudaStream_t stream) {
  const int64_t choices = int64_t{args.max_rows} * args.lists.top_k;
  const size_t list_bytes = ListMemory::bytes(choices, args.lists.count);
  if (args.logits == nullptr || args.max_rows > kClusterRows || choices > kClusterChoices ||
      list_bytes > size_t{kClusterBytes}) {
    return false;
  }
  const int blocks = args.max_rows <= 8 ? 1 : kClusterBlocks;
  if (blocks > 1 && !device_traits().clusters) return false;
  const size_t row_bytes = sizeof(uint32_t) * static_cast<size_t>(route_words(args));
  int warps = std::clamp(ceil_div(args.max_rows, blocks), 8, kClusterWarps);
  while (warps > 8 && row_bytes * static_cast<size_t>(warps) > size_t{kClusterBytes}) warps /= 2;
  const size_t bytes = row_bytes * static_cast<size_t>(warps) + list_bytes;
  bool launched = false;
  with_each(args.num_experts, [&](auto each) {
    const auto kernel = route_cluster_kernel<each()>;
    launched = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    2 * kClusterBytes) == cudaSuccess;
    if (!launched) return void(cudaGetLastError());
    launch_cluster(kernel, blocks, blocks, warps * 32, bytes, stream, args);
  });
  return launched;
}

}  // namespace

void launch_route_experts(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<RouteExpertsArgs>(packed);
  if (launch_cluster_route(args, stream)) return;
  if (args.logits != nullptr) {
    const size_t shared = sizeof(uint32_t) * kWarps * static_cast<size_t>(route_words(args));
    with_each(args.num_experts, [&](auto each) {
      launch_kernel(route_kernel<each()>, ceil_div(args.max_rows, kWarps), kWarps * 32, shared,
                    stream, args);
    });
  }
  launch_kernel(list_kernel, args.lists.count, kListThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
