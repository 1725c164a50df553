#pragma once
#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/cuda/wgmma.cuh"
#include "kernels/experts/cuda/expert_parts.cuh"
#include "kernels/experts/cuda/expert_store.cuh"

// Products of experts with wgmma: 64 columns of an expert are operand A, its entries operand B, so
// that few entries take few operations. Blocks are persistent. In each, one thread streams weights
// through a ring in shared memory, running ahead across parts, so that memory is never idle; some
// warps gather the rows of x that entries name into another ring; warpgroups multiply.
namespace foretoken::cuda {

// Units of bfloat16 weights: atoms, which are operand A as they lie.
struct Bf16Units {
  static constexpr int kUnitK = kAtomK;
  static constexpr int kUnitBytes = kAtomBytes;  // of a group of 8 columns

  // c (+)= the products of a unit. w: of the first group of a warpgroup in shared memory, groups
  // Stride bytes apart; x: of its k.
  template <int N, int Tiles, int Stride>
  __device__ static void multiply(float (&c)[Tiles][N / 2], uint32_t w, uint32_t x, bool add) {
    const uint64_t a = swizzled_operand(w, Stride);
    const uint64_t b = swizzled_operand(x, kAtomBytes);
#pragma unroll
    for (int step = 0; step < kAtomK / 16; ++step) {
#pragma unroll
      for (int i = 0; i < Tiles; ++i) {
        wgmma<N>(c[i], a + (i * 8 * Stride / 16 + step * 2), b + step * 2, add || step > 0);
      }
    }
  }
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
  static constexpr int kStageW = Cut::kGroups * Cut::kGroupBytes;
  static constexpr int kStageX = Cut::kStageK / kAtomK * Cut::kAtomBytesX;
  static constexpr int kBytesW = kStagesW * kStageW;
  static constexpr int kBytesX = kStagesX * kStageX;
  static constexpr int kProducts = Cut::kWarpgroups * 128;  // threads that multiply
  static constexpr int kThreads = kProducts + 128;
  // Registers move from threads that load to those that multiply. A block has 168 for each of 384
  // threads: 2 x 216 + 72. A raise beyond that waits for ever.
  static constexpr bool kMovesRegisters = Cut::kEntries * Cut::kTiles > 128;
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
    w.init(1, Shape::kWarpgroups * 4);
    x.init(Shape::kWarpsX * 32, Shape::kWarpgroups * 4);
    publish_barriers();
  }

 private:
  __device__ static uint64_t* barriers(uint8_t* shared) {
    return reinterpret_cast<uint64_t*>(shared + Shape::kBytesW + Shape::kBytesX);
  }
};

// One thread: brings the weights.
template <class Shape>
class ExpertWeightLoader {
 public:
  using Units = typename Shape::Units;

  __device__ ExpertWeightLoader(const ExpertGemmArgs& args, const ExpertRings<Shape>& rings)
      : args_(args), ring_(rings.w), parts(args) {
    policy_ = Shape::kTiled ? evict_normal_policy() : evict_first_policy();
  }

  // As many stages as may be on their way of what is known now.
  __device__ void start() {
    while (under_way_ < Shape::kInFlight && next_stage()) load();
  }
  __device__ void run() {
    while (next_stage()) load();
  }
  // What is under way must land before the block may end.
  __device__ void drop() {
    for (; under_way_ > 0; --under_way_) land();
  }

 private:
  __device__ bool next_stage() {
    if (stage_ < num_stages_) return true;
    ExpertPart part;
    if (!parts.next(part)) return false;
    const ExpertMatrix<Units> matrix(args_, part.expert);
    group_bytes_ = matrix.group_bytes();
    groups_ = part.num_pairs * 2;
    from_ = matrix.weight + part.first_pair * 2 * group_bytes_;
    units_ = matrix.units;
    num_stages_ = ceil_div(units_, Shape::kUnits);
    stage_ = 0;
    return true;
  }

  __device__ void land() {
    ring_.wait_full(landed_);
    landed_.advance();
  }

  __device__ void load() {
    if (under_way_ == Shape::kInFlight) {
      land();
    } else {
      ++under_way_;
    }
    ring_.wait_empty(at_);
    const int bytes = min(Shape::kUnits, units_ - stage_ * Shape::kUnits) * Units::kUnitBytes;
    uint64_t* barrier = ring_.full + at_.place;
    arrive_expecting(barrier, groups_ * bytes);
    uint8_t* to = ring_.at(at_);
#pragma unroll
    for (int i = 0; i < Shape::kGroups; ++i) {
      if (i < groups_) {
        copy_bulk(to + i * Shape::kGroupBytes, from_ + i * group_bytes_, bytes, barrier, policy_);
      }
    }
    from_ += Shape::kGroupBytes;
    ++stage_;
    at_.advance();
  }

  const ExpertGemmArgs& args_;
  const ExpertRing<Shape::kStagesW, Shape::kStageW>& ring_;
  uint64_t policy_;
  const uint8_t* from_ = nullptr;
  int64_t group_bytes_ = 0;
  int groups_ = 0, units_ = 0, stage_ = 0, num_stages_ = 0, under_way_ = 0;
  RingPlace<Shape::kStagesW> at_, landed_;

 public:
  PartsOf<Shape> parts;
};

// Some warps: bring the rows of x that entries name, in the swizzle of operands.
template <class Shape>
struct ExpertRowLoader {
  const ExpertGemmArgs& args;
  const ExpertRings<Shape>& rings;
  int warp;  // of these
  RingPlace<Shape::kStagesX> at{};

  static constexpr int kRowsAtOnce = Shape::kWarpsX * 4;
  static constexpr int kRows = ceil_div(Shape::kEntries, kRowsAtOnce);  // of a thread

  __device__ void run(PartsOf<Shape> parts) {
    ExpertPart part;
    while (parts.next(part)) {
      const ExpertMatrix<typename Shape::Units> matrix(args, part.expert);
      uint32_t from[kRows];
      find_rows(part, matrix, from);
      const int stages = ceil_div(matrix.units, Shape::kUnits);
      for (int stage = 0; stage < stages; ++stage) {
        rings.x.wait_empty(at);
        load(matrix, stage * Shape::kStageK, part.num_entries, from);
        arrive_after_copies(rings.x.full + at.place);
        at.advance();
      }
    }
  }

 private:
  __device__ int first_row() const { return warp * 4 + static_cast<int>(threadIdx.x) % 32 / 8; }

  // Where the rows begin that this thread brings 16 bytes of at a time, in 16 bytes.
  __device__ void find_rows(const ExpertPart& part,
                            const ExpertMatrix<typename Shape::Units>& matrix,
                            uint32_t (&from)[kRows]) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int r = first_row() + i * kRowsAtOnce;
      uint32_t row = 0;
      if (r < part.num_entries) {
        row = part.first_entry + r;
        if (part.expert != kSharedExpert) row = args.lists.entries[row];
        if (matrix.by_choice) row /= args.lists.top_k;
      }
      from[i] = row * (matrix.k / 8);
    }
  }

  // What lies behind k is zero; the places of entries that are none keep what they had.
  __device__ void load(const ExpertMatrix<typename Shape::Units>& matrix, int first_k, int entries,
                       const uint32_t (&from)[kRows]) const {
    const int chunk = static_cast<int>(threadIdx.x) % 8;
    const auto* x = reinterpret_cast<const uint4*>(matrix.x);
#pragma unroll
    for (int atom = 0; atom < Shape::kStageK / kAtomK; ++atom) {
      const int k = first_k + atom * kAtomK + chunk * 8;
      const bool valid = k < matrix.k;
      const uint32_t column = valid ? k / 8 : 0;
      uint8_t* to = rings.x.at(at) + atom * Shape::kAtomBytesX;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int r = first_row() + i * kRowsAtOnce;
        if (r >= entries) break;
        copy16_async(to + r / 8 * kAtomBytes + atom_chunk(r % 8, chunk) * 16,
                     x + (from[i] + column), valid);
      }
    }
  }
};

// A warpgroup: multiplies and stores.
template <class Shape, bool Gated>
struct ExpertProducts {
  const ExpertGemmArgs& args;
  const ExpertRings<Shape>& rings;
  RingPlace<Shape::kStagesW> w{};
  RingPlace<Shape::kStagesX> x{};

  using Units = typename Shape::Units;
  using Sums = float[Shape::kTiles][Shape::kEntries / 2];

  __device__ void run(PartsOf<Shape> parts) {
    const int warpgroup = static_cast<int>(threadIdx.x) / 128;
    const int first = warpgroup * Shape::kTiles * 4;  // pair of a part
    int* entries = rings.part_entries + warpgroup * 2 * Shape::kEntries;
    int turn = 0;
    ExpertPart part;
    while (parts.next(part)) {
      const ExpertMatrix<Units> matrix(args, part.expert);
      if (first >= part.num_pairs) {
        skip(ceil_div(matrix.units, Shape::kUnits));
        continue;
      }
      int* own = entries + turn * Shape::kEntries;  // the other half may still be read
      turn ^= 1;
      find_entries(part, own);
      Sums c;
      multiply(c, matrix.units);
      asm volatile("bar.sync %0, 128;" ::"r"(warpgroup + 1) : "memory");
      const ExpertPartStore<Shape::kEntries, Gated> store(args, part, own);
#pragma unroll
      for (int i = 0; i < Shape::kTiles; ++i) {
        const int pair = first + i * 4 + static_cast<int>(threadIdx.x) % 128 / 32;
        if (pair < part.num_pairs) store.take(part.first_pair + pair, c[i]);
      }
    }
  }

 private:
  __device__ void find_entries(const ExpertPart& part, int* to) const {
    for (int i = static_cast<int>(threadIdx.x) % 128; i < part.num_entries; i += 128) {
      const int place = part.first_entry + i;
      to[i] = part.expert == kSharedExpert ? place : args.lists.entries[place];
    }
  }

  __device__ void wait_stage() const {
    rings.w.wait_full(w);
    rings.x.wait_full(x);
    fence_async_proxy();  // x was copied by threads
  }
  __device__ void release(int place_w, int place_x) const {
    if (threadIdx.x % 32 != 0) return;
    arrive(rings.w.empty + place_w);
    arrive(rings.x.empty + place_x);
  }
  __device__ void advance() {
    w.advance();
    x.advance();
  }

  __device__ void skip(int stages) {
    for (int i = 0; i < stages; ++i) {
      wait_stage();
      release(w.place, x.place);
      advance();
    }
  }

  __device__ void multiply_unit(Sums& c, int unit, bool add) const {
    const int group = static_cast<int>(threadIdx.x) / 128 * Shape::kTiles * 8;
    const uint32_t from_w = shared_address(rings.w.at(w)) + group * Shape::kGroupBytes;
    const uint32_t from_x = shared_address(rings.x.at(x));
    Units::template multiply<Shape::kEntries, Shape::kTiles, Shape::kGroupBytes>(
        c, from_w + unit * Units::kUnitBytes,
        from_x + unit * (Units::kUnitK / kAtomK) * Shape::kAtomBytesX, add);
  }

  // One chain of ascending steps of 16 k for each product.
  __device__ void multiply(Sums& c, int units) {
    const int stages = units / Shape::kUnits;  // full ones
    int last_w = 0, last_x = 0;
    for (int stage = 0; stage < stages; ++stage) {
      wait_stage();
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < Shape::kUnits; ++i) multiply_unit(c, i, stage > 0 || i > 0);
      wgmma_commit();
      wgmma_wait<1>();
      if (stage > 0) release(last_w, last_x);
      last_w = w.place;
      last_x = x.place;
      advance();
    }
    wgmma_wait<0>();
    if (stages > 0) release(last_w, last_x);
    const int rest = units - stages * Shape::kUnits;
    if (Shape::kUnits == 1 || rest == 0) return;
    wait_stage();
    for (int i = 0; i < rest; ++i) {
      wgmma_fence();
      multiply_unit(c, i, stages > 0 || i > 0);
      wgmma_commit();
      wgmma_wait<0>();
    }
    release(w.place, x.place);
    advance();
  }
};

// Lets the next op start once it knows that all before it have ended, so that the product behind
// it knows the lists from the start where lists_are_old.
template <class Shape, bool Gated>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    expert_stream_kernel(const __grid_constant__ ExpertGemmArgs args) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t shared[];
  const ExpertRings<Shape> rings(shared);
  const bool is_loader = threadIdx.x / 32 == Shape::kProducts / 32 && elect_lane();
  ExpertWeightLoader<Shape> loader(args, rings);
  int live = 0;
  const auto know_lists = [&] {
    ExpertTiles::count_tiles(args.lists, Shape::kEntries, rings.first_tiles);
    live = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
    loader.parts.open(rings.first_tiles, live);
  };
  if (is_loader) rings.init();
  __syncwarp();
  if (args.lists_are_old != 0) know_lists();
  if (is_loader) loader.start();
  __syncwarp();
  wait_for_all_before();
  let_next_start();
  if (args.lists_are_old == 0) know_lists();
  if (threadIdx.x < Shape::kProducts) {
    if constexpr (Shape::kMovesRegisters) raise_registers<216>();
    PartsOf<Shape> parts(args);
    parts.open(rings.first_tiles, live);
    ExpertProducts<Shape, Gated>{args, rings}.run(parts);
    return;
  }
  if constexpr (Shape::kMovesRegisters) lower_registers<72>();
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0);
  if (warp == Shape::kProducts / 32) {
    if (is_loader) live > 0 ? loader.run() : loader.drop();
  } else if (warp <= Shape::kProducts / 32 + Shape::kWarpsX) {
    PartsOf<Shape> parts(args);
    parts.open(rings.first_tiles, live);
    ExpertRowLoader<Shape>{args, rings, warp - Shape::kProducts / 32 - 1}.run(parts);
  }
#endif
}

// False when the device cannot run it.
template <class Shape>
bool launch_expert_shape(const ExpertGemmArgs& args, cudaStream_t stream) {
  const auto kernel =
      args.gated != 0 ? expert_stream_kernel<Shape, true> : expert_stream_kernel<Shape, false>;
  const int bytes = Shape::bytes(args.lists.count);
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) !=
      cudaSuccess) {
    return false;
  }
  launch_kernel(kernel, device_traits().num_sms * Shape::kBlocks, Shape::kThreads, bytes, stream,
                args);
  return true;
}

}  // namespace foretoken::cuda
