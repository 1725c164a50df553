#pragma once
#include <algorithm>

#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/tensor_map.cuh"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/cuda/wgmma.cuh"
#include "kernels/gemm/cuda/gemm_common.cuh"
#include "kernels/gemm/cuda/gemm_store_staged.cuh"

// Products of many rows with wgmma: x is operand A (64 rows a product), the weight operand B. A
// persistent grid; in each block one thread loads and the warpgroups multiply. Blocks of a cluster
// share what they load: ClusterX neighbours along x a weight tile, ClusterW neighbours along the
// weight a tile of x.
namespace foretoken::cuda {

// A block computes Warpgroups x TilesX x 64 rows of x times N rows of the weight. Blocks of a
// cluster share what they load: ClusterX neighbours along x a weight tile, ClusterW neighbours
// along the weight a tile of x.
template <int Warpgroups_, int TilesX_, int N_, int ClusterX_, int ClusterW_>
struct WideShape {
  static constexpr int kWarpgroups = Warpgroups_;
  static constexpr int kTilesX = TilesX_;  // of a warpgroup
  static constexpr int kN = N_;
  // Products side by side: the compiler refuses one of more than 200 columns where a thread starts
  // with 128 registers.
  static constexpr int kTilesW = kWarpgroups == 3 && kN > 200 ? 2 : 1;
  static constexpr int kClusterX = ClusterX_;
  static constexpr int kClusterW = ClusterW_;
  static constexpr int kCluster = kClusterX * kClusterW;
  static constexpr int kRows = kWarpgroups * kTilesX * 64;
  static constexpr int kGroups = kN / kGroupRows;
  static constexpr int kThreads = (kWarpgroups + 1) * 128;
  // Of a thread that multiplies and of one that loads, where a block moves any.
  static constexpr int kProductRegisters = kWarpgroups == 2 ? 232 : 160;
  static constexpr int kLoaderRegisters = kWarpgroups == 2 ? 40 : 32;
  static constexpr int kAtomBytesX = kRows * 128;  // along 64 k
  static constexpr int kAtomBytesW = kGroups * kAtomBytes;
  static constexpr int kAtoms = kAtomBytesX + kAtomBytesW > 24576 ? 1 : 2;  // in a stage
  static constexpr int kStageBytes = kAtoms * (kAtomBytesX + kAtomBytesW);
  static constexpr int kMaxBytes = 232448;  // of shared memory in a block of sm_90
  // The largest tiles are stored through shared memory (gemm_store_staged.cuh): room behind the
  // barriers, which four stages leave. They are many, and go along the weight first.
  static constexpr bool kStaged = kWarpgroups == 2 && kTilesX == 1 && kN == 256;
  static constexpr bool kByColumns = kStaged;
  static constexpr int kBarrierBytes = kStaged ? 1024 : 256;
  static constexpr int kStagingBytes = kStaged ? kWarpgroups * 4 * kStagedBytes : 0;
  static constexpr int kStages =
      std::min((kMaxBytes - kBarrierBytes - kStagingBytes) / kStageBytes, 12);
  static constexpr int kStagingAt = kStages * kStageBytes + kBarrierBytes;
  static constexpr int kBytes =
      kStaged ? kStagingAt + kStagingBytes : kStages * kStageBytes + kStages * 16;
  static_assert(kGroups % kClusterX == 0 && kGroups / kClusterX <= 32);
  static_assert(kRows % (8 * kClusterW) == 0 && kRows / kClusterW <= 256);
  static_assert(kStages >= 3 && kAtoms <= 2);
  static_assert(kTilesW == 1 || kGroups % (2 * kTilesW) == 0);  // pairs of gate and up stay whole
};

// Which tiles there are and in which order: along x first within bands of rows, or along the weight
// within bands of its rows, so that the blocks at work share tiles of both in the L2 cache.
template <class Shape>
struct WideTiles {
  static constexpr int kBand =
      Shape::kByColumns ? 2048 / (Shape::kN * Shape::kClusterW) : 16 / Shape::kClusterX;
  int num_x;  // of clusters
  int num_w;

  __device__ int count() const { return num_x * num_w; }
  __device__ int2 at(int tile) const {
    const int along = Shape::kByColumns ? num_x : num_w, across = Shape::kByColumns ? num_w : num_x;
    const int band = tile / max(kBand * along, 1) * kBand;
    const int width = max(min(kBand, across - band), 1);
    const int rest = tile - band * along;
    const int2 at{band + rest % width, rest / width};
    return Shape::kByColumns ? int2{at.y, at.x} : at;
  }
};

// What a block has to do: tiles first, first + step, ... below count, each of num_stages stages.
// The weights of the first `early` stages are loaded before the op before has ended, for the tile
// that comes first when the last tile along x has a live row. Otherwise `dropped` of them, all, are
// thrown away.
template <class Shape>
struct WideWork {
  static constexpr int kMaxEarlyRows = 512;
  WideTiles<Shape> tiles;
  int first;
  int step;
  int count = 0;
  int num_stages;
  int early;
  int dropped = 0;
  int live = 0;
  int rank_x;  // place in the cluster
  int rank_w;

  __device__ explicit WideWork(const GemmArgs& args)
      : tiles{ceil_div(args.max_rows, Shape::kRows * Shape::kClusterX),
              ceil_div(args.n, Shape::kN * Shape::kClusterW)},
        first(static_cast<int>(blockIdx.x) / Shape::kCluster),
        step(static_cast<int>(gridDim.x) / Shape::kCluster),
        num_stages(ceil_div(args.k, Shape::kAtoms * kAtomK)) {
    const int rank = Shape::kCluster == 1 ? 0 : static_cast<int>(cluster_rank());
    rank_x = rank % Shape::kClusterX;
    rank_w = rank / Shape::kClusterX;
    const bool is_early = tiles.num_x == 1 || args.max_rows <= kMaxEarlyRows;
    early = is_early ? min(Shape::kStages, num_stages) : 0;
  }

  __device__ void set_live(int rows) {
    live = rows;
    const int max_x = tiles.num_x;
    tiles.num_x = ceil_div(rows, Shape::kRows * Shape::kClusterX);
    count = tiles.count();
    if (tiles.num_x == max_x) return;
    dropped = early;
    early = 0;
  }
  __device__ int first_row(int2 tile) const {
    return (tile.x * Shape::kClusterX + rank_x) * Shape::kRows;
  }
  __device__ int column(int2 tile) const { return tile.y * Shape::kClusterW + rank_w; }
};

// The ring of stages in shared memory. `full` counts bytes, `empty` the warps that are done with a
// stage in every block that this one sends to.
template <class Shape>
struct WideRing {
  uint8_t* stages;
  uint64_t* full;
  uint64_t* empty;
  RingPlace<Shape::kStages> at{};

  __device__ explicit WideRing(uint8_t* shared)
      : stages(shared),
        full(reinterpret_cast<uint64_t*>(shared + Shape::kStages * Shape::kStageBytes)),
        empty(full + Shape::kStages) {}

  __device__ void init() const {
    constexpr int kSenders = Shape::kClusterX + Shape::kClusterW - 1;
    for (int i = 0; i < Shape::kStages; ++i) {
      init_barrier(full + i, 1);
      init_barrier(empty + i, Shape::kWarpgroups * 4 * kSenders);
    }
    publish_barriers();
  }
  __device__ uint8_t* x(int atom) const {
    return stages + at.place * Shape::kStageBytes + atom * Shape::kAtomBytesX;
  }
  // Groups follow each other, each with all its atoms of the stage.
  __device__ uint8_t* w() const { return x(Shape::kAtoms); }
};

struct WideMaps {
  CUtensorMap x;
  CUtensorMap w;
};

// The loading thread. What lies beyond the edges arrives as zeros.
template <class Shape>
struct WideLoader {
  const WideMaps& maps;
  WideRing<Shape>& ring;
  uint64_t policy = 0;  // for the weight

  // Needs no other op's results.
  __device__ void start(const WideWork<Shape>& work) {
    prefetch_map(&maps.x);
    prefetch_map(&maps.w);
    // A weight that one pass reads need not stay in the cache.
    policy = work.tiles.num_x == 1 ? evict_first_policy() : evict_normal_policy();
    for (int i = 0; i < work.early; ++i) {
      expect_bytes(ring.full + i, Shape::kAtoms * Shape::kAtomBytesW);
      load_weight(work, work.tiles.at(work.first), i);
      ring.at.advance();
    }
    ring.at = {};
  }

  __device__ void run(const WideWork<Shape>& work) const {
    for (int i = 0; i < work.dropped; ++i) {
      arrive(ring.full + i);
      ring.at.advance();
    }
    for (int i = 0; i < work.early; ++i) {
      arrive_expecting(ring.full + i, Shape::kAtoms * Shape::kAtomBytesX);
      load_x(work, work.tiles.at(work.first), i);
      ring.at.advance();
    }
    int stage = work.early;
    for (int t = work.first; t < work.count; t += work.step) {
      const int2 tile = work.tiles.at(t);
      for (; stage < work.num_stages; ++stage) {
        wait_barrier(ring.empty + ring.at.place, ring.at.parity ^ 1);
        arrive_expecting(ring.full + ring.at.place, Shape::kStageBytes);
        load_weight(work, tile, stage);
        load_x(work, tile, stage);
        ring.at.advance();
      }
      stage = 0;
    }
  }

 protected:
  __device__ void load_weight(const WideWork<Shape>& work, int2 tile, int stage) const {
    constexpr int kShare = Shape::kGroups / Shape::kClusterX;
    const int3 at{0, stage * Shape::kAtoms,
                  work.column(tile) * Shape::kGroups + work.rank_x * kShare};
    uint8_t* to = ring.w() + work.rank_x * kShare * Shape::kAtoms * kAtomBytes;
    if constexpr (Shape::kClusterX == 1) {
      copy_box(to, &maps.w, at, ring.full + ring.at.place, policy);
    } else {
      constexpr int kRanks = (1 << Shape::kClusterX) - 1;
      copy_box_to(static_cast<uint16_t>(kRanks << (work.rank_w * Shape::kClusterX)), to, &maps.w,
                  at, ring.full + ring.at.place, policy);
    }
  }

  __device__ void load_x(const WideWork<Shape>& work, int2 tile, int stage) const {
    constexpr int kShare = Shape::kRows / Shape::kClusterW;
    const int row = work.first_row(tile) + work.rank_w * kShare;
#pragma unroll
    for (int atom = 0; atom < Shape::kAtoms; ++atom) {
      uint8_t* to = ring.x(atom) + work.rank_w * kShare * 128;
      const int column = (stage * Shape::kAtoms + atom) * kAtomK;
      if constexpr (Shape::kClusterW == 1) {
        copy_box(to, &maps.x, column, row, ring.full + ring.at.place);
      } else {
        uint16_t ranks = 0;
        for (int i = 0; i < Shape::kClusterW; ++i) {
          ranks |= 1 << (i * Shape::kClusterX + work.rank_x);
        }
        copy_box_to(ranks, to, &maps.x, column, row, ring.full + ring.at.place);
      }
    }
  }
};

}  // namespace foretoken::cuda
