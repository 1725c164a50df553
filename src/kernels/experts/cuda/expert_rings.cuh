#pragma once
#include <type_traits>

#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/cuda/wgmma.cuh"
#include "kernels/experts/cuda/expert_parts.cuh"

// What the blocks of expert_stream.cuh compute, and what they have in shared memory.
namespace foretoken::cuda {

// What multiplies products beside the codes of both operands. Null: nothing.
struct ExpertScales {
  const float* of_rows = nullptr;   // of packed rows of the experts' weight, in the end
  const float* of_units = nullptr;  // [units][w_stride], of units of these rows
  int w_stride = 0;
  const float* of_x = nullptr;  // [units][x_stride], of units of rows of x
  int x_stride = 0;
};

// A block computes Warpgroups x Tiles x 64 columns for up to Entries entries in stages of Count
// units along k.
template <class Units_, int Warpgroups_, int Tiles_, int Entries_, int Count_>
struct ExpertCut {
  using Units = Units_;
  static constexpr int kWarpgroups = Warpgroups_;
  static constexpr int kTiles = Tiles_;  // of a warpgroup
  static constexpr int kEntries = Entries_;
  static constexpr int kUnits = Count_;  // of a stage
  static constexpr int kColumns = kWarpgroups * kTiles * 64;
  static constexpr int kGroups = kColumns / kGroupRows;
  static constexpr int kPairs = kColumns / kPairRows;
  static constexpr int kStageK = kUnits * Units::kUnitK;
  static constexpr int kGroupBytes = kUnits * Units::kUnitBytes;  // of a stage
  static constexpr int kAtomBytesX = kEntries * 128;              // along 64 k
};

// How a block goes through them. StagesW, StagesX: of its rings; InFlight: stages of the weight
// that are on their way at most; Blocks: of a multiprocessor.
template <class Cut, int StagesW_, int StagesX_, int InFlight_, int Blocks_, bool Tiled_>
struct ExpertShape : Cut {
  static constexpr int kStagesW = StagesW_;
  static constexpr int kStagesX = StagesX_;
  static constexpr int kInFlight = InFlight_;
  static constexpr int kBlocks = Blocks_;
  static constexpr bool kTiled = Tiled_;
  // That gather x.
  static constexpr int kWarpsX = Cut::kEntries <= 16 ? 1 : Cut::kEntries <= 32 ? 2 : 3;
  // That start copies of weights: of many small ones, one thread starts too few.
  static constexpr int kWarpsW = Cut::Units::kRegisters > 0 ? 4 - kWarpsX : 1;
  static constexpr int kCodesW = Cut::kGroups * Cut::kGroupBytes;
  static constexpr int kCodesX = Cut::kStageK / kAtomK * Cut::kAtomBytesX;
  static constexpr int kScalesW = Cut::kColumns * Cut::Units::kScaleW;  // of a unit
  static constexpr int kScalesX = Cut::kEntries * Cut::Units::kScaleX;
  static constexpr int kStageW = kCodesW + (Cut::kUnits * kScalesW + 1023) / 1024 * 1024;
  static constexpr int kStageX = kCodesX + (Cut::kUnits * kScalesX + 1023) / 1024 * 1024;
  static constexpr int kBytesW = (kStagesW * kStageW + 1023) / 1024 * 1024;  // x lies on 1 KB
  static constexpr int kBytesX = kStagesX * kStageX;
  static constexpr int kProducts = Cut::kWarpgroups * 128;  // threads that multiply
  static constexpr int kThreads = kProducts + 128;
  // Where threads that multiply need more registers than others: how many these and those have. A
  // block cannot have more together than it started with, and would wait for them for ever.
  static constexpr bool kMovesRegisters =
      Cut::kEntries * Cut::kTiles + Cut::Units::kRegisters > 128;
  static constexpr int kProductRegisters = 216;
  static constexpr int kLoaderRegisters = 72;
  static constexpr int kStartRegisters = (65536 / kThreads) / 8 * 8;
  static_assert(!kMovesRegisters || kProducts * kProductRegisters + 128 * kLoaderRegisters <=
                                        kThreads * kStartRegisters);
  // Entries of the parts that a warpgroup stores, of two.
  static constexpr int kNumbers = Cut::kWarpgroups * 2 * Cut::kEntries;
  static constexpr int kFixedBytes = kBytesW + kBytesX + (kStagesW + kStagesX) * 16 + kNumbers * 4;
  static constexpr int bytes(int experts) { return kFixedBytes + (experts + 1) * 4; }
  static_assert(kInFlight <= kStagesW);
};

template <class Shape>
using PartsOf = std::conditional_t<Shape::kTiled, TiledParts<Shape>, StreamedParts<Shape>>;

// The product that a part belongs to.
template <class Units>
struct ExpertMatrix {
  const uint8_t* weight;  // of the expert
  const __nv_bfloat16* x;
  int n;
  int k;
  int units;       // along k
  bool by_choice;  // x has a row for all choices of a row

  __device__ ExpertMatrix(const ExpertGemmArgs& args, int expert) {
    const bool shared = expert == kSharedExpert;
    n = shared ? args.shared.n : args.n;
    k = shared ? args.shared.k : args.k;
    units = ceil_div(k, Units::kUnitK);
    by_choice = !shared && args.by_entry == 0;
    x = static_cast<const __nv_bfloat16*>(shared ? args.shared.x : args.x);
    weight = static_cast<const uint8_t*>(shared ? args.shared.weight : args.weight) +
             int64_t{shared ? 0 : expert} * (n / kGroupRows) * group_bytes();
  }
  __device__ int64_t group_bytes() const { return int64_t{units} * Units::kUnitBytes; }
};

// A ring of stages: `full` counts what arrived, `empty` the warps that have read.
template <int Stages, int StageBytes>
struct ExpertRing {
  uint8_t* data;
  uint64_t* full;
  uint64_t* empty;

  __device__ ExpertRing(uint8_t* stages, uint64_t* barriers)
      : data(stages), full(barriers), empty(barriers + Stages) {}
  __device__ void init(int writers, int readers) const {
    for (int i = 0; i < Stages; ++i) {
      init_barrier(full + i, writers);
      init_barrier(empty + i, readers);
    }
  }
  __device__ uint8_t* at(const RingPlace<Stages>& place) const {
    return data + place.place * StageBytes;
  }
  __device__ void wait_full(const RingPlace<Stages>& at) const {
    wait_barrier(full + at.place, at.parity);
  }
  __device__ void wait_empty(const RingPlace<Stages>& at) const {
    wait_barrier(empty + at.place, at.parity ^ 1);
  }
};

// What a block has in shared memory.
template <class Shape>
struct ExpertRings {
  ExpertRing<Shape::kStagesW, Shape::kStageW> w;
  ExpertRing<Shape::kStagesX, Shape::kStageX> x;
  int* part_entries;  // [warpgroups][2][kEntries]
  int* first_tiles;   // [experts + 1]

  __device__ explicit ExpertRings(uint8_t* shared)
      : w(shared, barriers(shared)),
        x(shared + Shape::kBytesW, barriers(shared) + 2 * Shape::kStagesW),
        part_entries(
            reinterpret_cast<int*>(barriers(shared) + 2 * (Shape::kStagesW + Shape::kStagesX))),
        first_tiles(part_entries + Shape::kNumbers) {}
  __device__ void init() const {
    w.init(Shape::kWarpsW, Shape::kWarpgroups * 4);
    x.init(Shape::kWarpsX * 32, Shape::kWarpgroups * 4);
    publish_barriers();
  }

 private:
  __device__ static uint64_t* barriers(uint8_t* shared) {
    return reinterpret_cast<uint64_t*>(shared + Shape::kBytesW + Shape::kBytesX);
  }
};

// A warpgroup's places in both rings.
template <class Shape>
struct ExpertReader {
  const ExpertRings<Shape>& rings;
  RingPlace<Shape::kStagesW> w{};
  RingPlace<Shape::kStagesX> x{};

  __device__ void wait() const {
    rings.w.wait_full(w);
    rings.x.wait_full(x);
    fence_async_proxy();  // x was copied by threads
  }
  __device__ void advance() {
    w.advance();
    x.advance();
  }
  // A warp has read these places.
  __device__ void release(int place_w, int place_x) const {
    if (threadIdx.x % 32 != 0) return;
    arrive(rings.w.empty + place_w);
    arrive(rings.x.empty + place_x);
  }
  // It has read the present ones, as far as `held` depends on that, which is zero.
  __device__ void release_read(uint32_t held) const {
    if (threadIdx.x % 32 != 0) return;
    arrive(rings.w.empty + w.place + held);
    arrive(rings.x.empty + x.place + held);
  }
  // It has read the places before the present ones.
  __device__ void release_before() const {
    release((w.place > 0 ? w.place : Shape::kStagesW) - 1,
            (x.place > 0 ? x.place : Shape::kStagesX) - 1);
  }
  __device__ void skip(int stages) {
    for (int i = 0; i < stages; ++i) {
      wait();
      release(w.place, x.place);
      advance();
    }
  }
  // The present stage, of the warpgroup's first group on.
  __device__ uint32_t stage_w() const {
    const int group = static_cast<int>(threadIdx.x) / 128 * Shape::kTiles * 8;
    return shared_address(rings.w.at(w)) + group * Shape::kGroupBytes;
  }
  __device__ uint32_t stage_x() const { return shared_address(rings.x.at(x)); }
  // Scales of a unit of the stage.
  __device__ const float* scales_w(int unit) const {
    return reinterpret_cast<const float*>(rings.w.at(w) + Shape::kCodesW + unit * Shape::kScalesW);
  }
  __device__ const float* scales_x(int unit) const {
    return reinterpret_cast<const float*>(rings.x.at(x) + Shape::kCodesX + unit * Shape::kScalesX);
  }
};

}  // namespace foretoken::cuda
