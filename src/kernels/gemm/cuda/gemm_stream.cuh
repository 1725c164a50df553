#pragma once
#include <algorithm>
#include <type_traits>

#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/tensor_map.cuh"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/cuda/wgmma.cuh"
#include "kernels/gemm/cuda/gemm_common.cuh"
#include "kernels/gemm/cuda/gemm_store_block.cuh"

// Products of 1 to 64 rows with wgmma: x is operand A (64 rows, of which only those of the batch
// are loaded; what the others read changes no live row), the weight operand B. The time is that of
// reading the weight once: one thread streams it through a ring in shared memory, another one x,
// and a warpgroup multiplies. The weight's ring is filled before the op before has ended, so that
// memory is not idle between two products. All blocks want the same lines of x at the same time;
// the blocks of a cluster fetch them once.
namespace foretoken::cuda {

// A block computes up to Groups x 8 rows of x times N rows of the weight in stages of Atoms x 64 k.
// The blocks of a cluster take neighbouring rows of the weight; each sends its share of x to all.
template <int N_, int Atoms_, int StagesW_, int StagesX_, int Groups_, int Cluster_>
struct StreamShape {
  static constexpr int kN = N_;
  static constexpr int kAtoms = Atoms_;
  static constexpr int kStagesW = StagesW_;
  static constexpr int kStagesX = StagesX_;
  static constexpr int kGroups = Groups_;
  static constexpr int kCluster = Cluster_;
  static constexpr int kGroupsW = kN / kGroupRows;
  static constexpr int kAtomX = kGroups * kAtomBytes;
  static constexpr int kStageX = kAtoms * kAtomX;
  static constexpr int kStageW = kAtoms * kGroupsW * kAtomBytes;
  static constexpr int kBytesX = kStagesX * kStageX;
  static constexpr int kBytesW = kStagesW * kStageW;
  static constexpr int kBytes = kBytesX + kBytesW + (kStagesX + kStagesW) * 16;
  static constexpr int kThreads = 192;
  // Stages of the weight that are on their way at once, with those of all blocks of a
  // multiprocessor enough for the bandwidth. More would only make others wait: x, and the small op
  // before. Up to 8 rows, which may leave a multiprocessor one block of small stages, take all.
  static constexpr int kBlocks = kBytes <= 113 << 10 ? 2 : 1;
  // A block that is alone has more threads to store through shared memory, which gated products
  // take many operations for; not so many that the op before has no registers beside it.
  static constexpr int kGatedThreads = kBlocks == 1 && kGroups > 1 ? 256 : kThreads;
  static constexpr int kBytesInFlight = (kGroups <= 4 ? 48 << 10 : 80 << 10) / kBlocks;
  static constexpr int kInFlight =
      kGroups == 1 ? kStagesW : std::clamp(kBytesInFlight / kStageW, 2, kStagesW);
  static_assert(kN % kGroupRows == 0 && kN <= 256 && kGroups <= 8 && kAtoms % kCluster == 0);
  // Products read 64 rows from every place of x on, beyond the last one the weight's ring.
  static_assert(kBytesW >= 8 * kAtomBytes && kBytes <= 232448);
};

// Stages in shared memory: `full` counts the bytes that arrived, `empty` the warps that have read.
template <int Stages, int StageBytes>
struct StreamRing {
  uint8_t* data;
  uint64_t* full;
  uint64_t* empty;

  __device__ StreamRing(uint8_t* stages, uint64_t* barriers)
      : data(stages), full(barriers), empty(barriers + Stages) {}
  __device__ void init(int readers) const {
    for (int i = 0; i < Stages; ++i) {
      init_barrier(full + i, 1);
      init_barrier(empty + i, readers);
    }
  }
  __device__ uint8_t* place(int stage) const { return data + stage % Stages * StageBytes; }
  __device__ uint64_t* arrival(int stage) const { return full + stage % Stages; }
  __device__ uint64_t* release(int stage) const { return empty + stage % Stages; }
  __device__ void wait_full(int stage) const { wait_barrier(arrival(stage), stage / Stages & 1); }
  __device__ void wait_empty(int stage) const {
    if (stage >= Stages) wait_barrier(release(stage), (stage / Stages & 1) ^ 1);
  }
};

template <class Shape>
struct StreamBlock {
  const GemmArgs& args;
  StreamRing<Shape::kStagesX, Shape::kStageX> x;
  StreamRing<Shape::kStagesW, Shape::kStageW> w;
  int atoms;   // along k
  int stages;  // along k

  __device__ StreamBlock(const GemmArgs& gemm, uint8_t* shared, uint64_t* barriers)
      : args(gemm),
        x(shared, barriers),
        w(shared + Shape::kBytesX, barriers + 2 * Shape::kStagesX),
        atoms(num_atoms(gemm.k)),
        stages(ceil_div(atoms, Shape::kAtoms)) {}

  __device__ void init() const {
    x.init(4 * Shape::kCluster);
    w.init(4);
    publish_barriers();
  }
  __device__ int live() const {
    return live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows);
  }

  __device__ void load_weight(int stage, uint64_t policy) const {
    const int64_t group_bytes = int64_t{atoms} * kAtomBytes;
    const int group = static_cast<int>(blockIdx.x) * Shape::kGroupsW;
    const int groups = min(max(ceil_div(args.n, kGroupRows) - group, 0), Shape::kGroupsW);
    const int bytes = min(Shape::kAtoms, atoms - stage * Shape::kAtoms) * kAtomBytes;
    const uint8_t* from = static_cast<const uint8_t*>(args.weight) + group * group_bytes +
                          stage * (Shape::kAtoms * kAtomBytes);
    uint64_t* barrier = w.arrival(stage);
    arrive_expecting(barrier, groups * bytes);
#pragma unroll
    for (int i = 0; i < Shape::kGroupsW; ++i) {
      if (i < groups) {
        copy_bulk(w.place(stage) + i * (Shape::kAtoms * kAtomBytes), from + i * group_bytes, bytes,
                  barrier, policy);
      }
    }
  }

  // One thread; the weight is constant, so that its ring is filled while the op before runs: as
  // much as may be on its way at first, the rest by stream_weight.
  __device__ void start_weight(uint64_t policy) const {
    for (int stage = 0; stage < min(Shape::kInFlight, stages); ++stage) load_weight(stage, policy);
  }

  __device__ void stream_weight(uint64_t policy) const {
    const int early = min(Shape::kStagesW, stages);
    for (int stage = Shape::kInFlight; stage < early; ++stage) {
      w.wait_full(stage - Shape::kInFlight);
      load_weight(stage, policy);
    }
    wait_for_rows(args);
    if (live() == 0) {  // what is under way must land before the block may end
      for (int stage = 0; stage < early; ++stage) w.wait_full(stage);
      return;
    }
    for (int stage = early; stage < stages; ++stage) {
      w.wait_full(stage - Shape::kInFlight);
      w.wait_empty(stage);
      load_weight(stage, policy);
    }
  }

  // One thread. `few` has boxes of at most 8 rows, `all` of the rows of the batch: few live rows of
  // a large batch cost no more than a small batch.
  __device__ void stream_x(const CUtensorMap& all, const CUtensorMap& few) const {
    wait_for_rows(args);
    const int rows = live();
    if (rows == 0) return;
    const CUtensorMap* map = rows <= kGroupRows ? &few : &all;
    const int box_bytes =
        min(rows <= kGroupRows ? kGroupRows : Shape::kGroups * kGroupRows, args.max_rows) * 128;
    constexpr int kShare = Shape::kAtoms / Shape::kCluster;
    const int first = Shape::kCluster == 1 ? 0 : cluster_rank() * kShare;
    for (int stage = 0; stage < stages; ++stage) {
      x.wait_empty(stage);
      uint64_t* barrier = x.arrival(stage);
      arrive_expecting(barrier, Shape::kAtoms * box_bytes);
#pragma unroll
      for (int i = 0; i < kShare; ++i) {
        uint8_t* to = x.place(stage) + (first + i) * Shape::kAtomX;
        const int column = (stage * Shape::kAtoms + first + i) * kAtomK;
        if constexpr (Shape::kCluster == 1) {
          copy_box(to, map, column, 0, barrier);
        } else {
          copy_box_to((1 << Shape::kCluster) - 1, to, map, column, 0, barrier);
        }
      }
    }
  }

  // A warp has read this stage of both rings.
  __device__ void release(int stage) const {
    const int lane = threadIdx.x % 32;
    if (lane == 0) arrive(w.release(stage));
    if constexpr (Shape::kCluster == 1) {
      if (lane == 0) arrive(x.release(stage));
    } else {
      if (lane < Shape::kCluster) arrive_at(x.release(stage), lane);
    }
  }

  __device__ void multiply_atom(float (&c)[Shape::kN / 2], int stage, int atom, bool add) const {
    const uint64_t a =
        swizzled_operand(shared_address(x.place(stage)) + atom * Shape::kAtomX, kAtomBytes);
    const uint64_t b = swizzled_operand(shared_address(w.place(stage)) + atom * kAtomBytes,
                                        Shape::kAtoms * kAtomBytes);
#pragma unroll
    for (int step = 0; step < kAtomK / 16; ++step) {
      wgmma<Shape::kN>(c, a + step * 2, b + step * 2, add || step > 0);
    }
  }

  // The warpgroup: one chain of ascending steps of 16 k for each product.
  __device__ void multiply(float (&c)[Shape::kN / 2]) const {
    const int full_stages = atoms / Shape::kAtoms;
    for (int stage = 0; stage < full_stages; ++stage) {
      w.wait_full(stage);
      x.wait_full(stage);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < Shape::kAtoms; ++i) multiply_atom(c, stage, i, stage > 0 || i > 0);
      wgmma_commit();
      wgmma_wait<1>();
      if (stage > 0) release(stage - 1);
    }
    wgmma_wait<0>();
    if (full_stages == stages) return;
    if (full_stages > 0) release(full_stages - 1);
    w.wait_full(full_stages);
    x.wait_full(full_stages);
    for (int i = 0; i < atoms - full_stages * Shape::kAtoms; ++i) {
      wgmma_fence();
      multiply_atom(c, full_stages, i, full_stages > 0 || i > 0);
      wgmma_commit();
      wgmma_wait<0>();
    }
  }
};

// What stores through shared memory.
template <class Epilogue>
inline constexpr bool kStoresByBlock =
    std::is_same_v<Epilogue, StoreGated> || std::is_same_v<Epilogue, StoreBlock>;

template <class Shape, class Epilogue>
inline constexpr int kStreamThreads =
    kStoresByBlock<Epilogue> ? Shape::kGatedThreads : Shape::kThreads;

template <class Shape, class Epilogue>
__global__ void __launch_bounds__(kStreamThreads<Shape, Epilogue>)
    gemm_stream_kernel(const __grid_constant__ GemmArgs args, Epilogue epilogue,
                       const __grid_constant__ CUtensorMap all_x,
                       const __grid_constant__ CUtensorMap few_x) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t shared[];
  constexpr bool kByBlock = kStoresByBlock<Epilogue>;
  constexpr int kRows = Shape::kGroups * kGroupRows;
  const StreamBlock<Shape> block(
      args, shared, reinterpret_cast<uint64_t*>(shared + Shape::kBytesX + Shape::kBytesW));
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0);
  const int column = static_cast<int>(blockIdx.x);
  const uint64_t policy = evict_first_policy();
  // One lane is elected at each place, so that the compiler knows that it is one: otherwise every
  // copy becomes a loop over lanes.
  if (warp == 4 && elect_lane()) {
    block.init();
    block.start_weight(policy);
  }
  __syncwarp();
  if (args.frees_next == 0) let_next_start();
  if constexpr (Shape::kCluster > 1) sync_cluster();
  __syncthreads();
  if (warp < 4) {
    wait_for_rows(args);
    const int live = block.live();
    if (live > 0) {
      float c[Shape::kN / 2];
      block.multiply(c);
      if constexpr (kByBlock) {
        epilogue.template put_block<kRows>(c, reinterpret_cast<float*>(shared));
      } else {
        epilogue.take_rows(args, live, 0, column * Shape::kN, column, c);
      }
    }
  } else if (warp == 4) {
    if (elect_lane()) block.stream_weight(policy);
  } else if (warp == 5) {
    if (elect_lane()) block.stream_x(all_x, few_x);
  }
  if constexpr (kByBlock) {
    static_assert(kRows * StoreGated::block_stride(Shape::kN / 2) * 4 <=
                  Shape::kBytesX + Shape::kBytesW);
    __syncwarp();
    wait_for_rows(args);
    __syncthreads();
    __syncthreads();  // racecheck does not see the first one where a warp's lanes come to it apart
    epilogue.template store_block<Shape::kGatedThreads, Shape::kN / 2>(
        args, block.live(), column * Shape::kN, reinterpret_cast<const float*>(shared));
  }
  if constexpr (Shape::kCluster > 1) {  // neighbours may still write to this block's memory
    __syncwarp();
    sync_cluster();
  }
  wait_behind_stores(args);
#endif
}

// False when the driver knows no tensor maps.
template <class Shape, class Epilogue>
bool launch_stream(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  const auto kernel = gemm_stream_kernel<Shape, Epilogue>;
  const cudaError_t raised =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::kBytes);
  const auto box_rows = [&args](int most) { return args.max_rows < most ? args.max_rows : most; };
  CUtensorMap all_x;
  CUtensorMap few_x;
  if (raised != cudaSuccess ||
      !make_row_map(all_x, args.x, args.max_rows, args.k, box_rows(Shape::kGroups * kGroupRows)) ||
      !make_row_map(few_x, args.x, args.max_rows, args.k, box_rows(kGroupRows))) {
    return false;
  }
  set_width(epilogue, args, Shape::kN);
  const int blocks = ceil_div(ceil_div(args.n, Shape::kN), Shape::kCluster) * Shape::kCluster;
  launch_cluster(kernel, blocks, Shape::kCluster, kStreamThreads<Shape, Epilogue>, Shape::kBytes,
                 stream, args, epilogue, all_x, few_x);
  return true;
}

}  // namespace foretoken::cuda
