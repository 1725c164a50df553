#pragma once
#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/grid_barrier.cuh"
#include "kernels/cuda/tensor_map.cuh"
#include "kernels/gemm/cuda/gemm_common.cuh"
#include "kernels/gemm/layer_tail.h"

// The products of a layer's tail as one kernel whose blocks are all resident: the weights of all of
// them flow through one ring in shared memory without a pause, while what multiplies waits for rows
// of x between two products. A weight is taken in units of 16 rows, each by one warp.
namespace foretoken::cuda {

inline constexpr int kTailReaders = 8;    // warps that multiply, then one loads weights and one x
inline constexpr int kTailTile = 4;       // units at once
inline constexpr int kTailSlotAtoms = 4;  // along k; those of a stage
inline constexpr int kTailLead = 4;       // stages that a warp may be ahead of others
// Slots that are on their way at once: enough for the bandwidth. More would only make others wait
// longer for what they read, the attention before above all.
inline constexpr int kTailInFlight = 8;
inline constexpr int kTailThreads = (kTailReaders + 2) * 32;

// One product: its weight, and how it is cut.
struct TailProduct {
  const uint8_t* weight;
  int groups;  // of 8 rows
  int atoms;   // along k

  __host__ __device__ int units() const { return (groups + 1) / 2; }
  __device__ int stages() const { return ceil_div(atoms, kTailSlotAtoms); }
};

struct TailPlan {
  static constexpr int kMax = 4;
  TailProduct products[kMax];  // o, gate_up, down, qkv
  int count;
};

// x of the products: what attention left, normed and gated rows.
struct TailMaps {
  CUtensorMap attended, normed, gated;

  __device__ const CUtensorMap* of(int product) const {
    return product == 0 ? &attended : product == 2 ? &gated : &normed;
  }
};

// The units of a product that a block takes, in tiles of at most kTailTile. The last blocks take
// less: they are those that waited longest for a multiprocessor, which attention still held.
struct TailShare {
  int first = 0, count = 0, tiles = 0;

  TailShare() = default;
  __device__ explicit TailShare(const TailProduct& product) {
    const int block = static_cast<int>(blockIdx.x);
    const int blocks = static_cast<int>(gridDim.x);
    const int each = product.units() / blocks;
    const int rest = product.units() % blocks;
    first = each * block + min(block, rest);
    count = each + (block < rest ? 1 : 0);
    tiles = ceil_div(count, kTailTile);
  }
  __device__ int tile_begin(int tile) const { return first + count * tile / tiles; }
  __device__ int tile_units(int tile) const { return tile_begin(tile + 1) - tile_begin(tile); }
};

// A place of the ring of x and the parity of its present use.
inline constexpr int kTailPlaces = 8;
using TailPlace = RingPlace<kTailPlaces>;

// A slot of the weights' ring and the parity of its present use.
struct TailSlot {
  static constexpr int kSlots = 24;
  int place, parity;

  // Number i of those counted through.
  __device__ static TailSlot of(uint32_t i) {
    return {static_cast<int>(i % kSlots), static_cast<int>(i / kSlots & 1)};
  }
  __device__ void advance(int by) {
    place += by;
    if (place >= kSlots) {
      place -= kSlots;
      parity ^= 1;
    }
  }
};

// Shared memory. Slots of the weights' ring hold kTailSlotAtoms atoms of the two groups of 8 rows
// of a unit, one group after the other; they are counted through. Places of x hold as many atoms of
// the rows that there can be, 128 bytes a row, in the swizzle of where they lie.
struct TailMemory {
  static constexpr int kSlots = TailSlot::kSlots;
  static constexpr int kSlotBytes = 2 * kTailSlotAtoms * kAtomBytes;
  static constexpr int kBytesX = kTailPlaces * kTailSlotAtoms * kAtomBytes;
  static constexpr int kBarriers = 2 * (kSlots + kTailPlaces);
  static constexpr int kBytes = kSlots * kSlotBytes + kBytesX + kBarriers * 8;
  static_assert(kTailSlotAtoms == 4);
  // No warp begins a stage before all have left the one kTailLead before it; it leaves the stage
  // before its own when it has begun. What this stage's slots held before is older, so that no warp
  // waits for a slot a lap ahead.
  static_assert(kSlots >= (kTailLead + 1) * kTailTile && kTailPlaces >= kTailLead + 1);

  uint8_t* shared;
  int rows;         // of a box of x
  int place_bytes;  // whole periods of the swizzle

  __device__ TailMemory(uint8_t* memory, int max_rows)
      : shared(memory), rows(min(kGroupRows, max_rows)), place_bytes((rows + 1) / 2 * 1024) {}

  __device__ uint8_t* slot(int i) const { return shared + i * kSlotBytes; }
  __device__ uint8_t* place(int i) const { return shared + kSlots * kSlotBytes + i * place_bytes; }
  __device__ uint64_t* barriers() const {
    return reinterpret_cast<uint64_t*>(shared + kSlots * kSlotBytes + kBytesX);
  }
  __device__ uint64_t* slot_full(int i) const { return barriers() + i; }
  __device__ uint64_t* slot_empty(int i) const { return slot_full(i) + kSlots; }
  __device__ uint64_t* place_full(int i) const { return barriers() + 2 * kSlots + i; }
  __device__ uint64_t* place_empty(int i) const { return place_full(i) + kTailPlaces; }

  // At barrier i. All lanes of a reader leave a slot: racecheck knows of their reads only so.
  __device__ static constexpr int arrivals(int i) {
    if (i < kSlots) return 2;
    if (i < 2 * kSlots) return 32;
    return i < kBarriers - kTailPlaces ? 1 : kTailReaders;
  }
  // One thread, which knows the addresses: the lanes of a warp would take turns.
  __device__ void init() const {
#pragma unroll
    for (int i = 0; i < kBarriers; ++i) {
      init_barrier(barriers() + i, arrivals(i));
    }
    publish_barriers();
  }
  __device__ void wait_slot(TailSlot at) const { wait_barrier(slot_full(at.place), at.parity); }
  __device__ bool has_slot(TailSlot at) const {
    return barrier_ended(slot_full(at.place), at.parity);
  }
  __device__ bool is_free_slot(TailSlot at) const {
    return barrier_ended(slot_empty(at.place), at.parity ^ 1);
  }
  __device__ void wait_free_slot(TailSlot at) const {
    wait_barrier(slot_empty(at.place), at.parity ^ 1);
  }
  __device__ void wait_place(TailPlace at) const { wait_barrier(place_full(at.place), at.parity); }
  __device__ bool has_place(TailPlace at) const {
    return barrier_ended(place_full(at.place), at.parity);
  }
  // Until all warps have left the stage that this was the place of.
  __device__ void wait_left(TailPlace at) const { wait_barrier(place_empty(at.place), at.parity); }
  __device__ bool was_left(TailPlace at) const {
    return barrier_ended(place_empty(at.place), at.parity);
  }
  __device__ void wait_free_place(TailPlace at) const {
    wait_barrier(place_empty(at.place), at.parity ^ 1);
  }
};

// Words of args.sync: of all blocks, that they have stored a product; of those with a row, that
// they have normed it too.
__device__ inline uint32_t* tail_word(const LayerTailArgs& args, int product, bool normed) {
  constexpr int kLine = 32;
  const int place = product == 0 ? 0 : product == 1 ? 2 : 3;
  return args.sync + (place + (normed ? 1 : 0)) * kLine;
}
// Whether rows are normed after this product, which is not the last one.
__device__ inline bool tail_norms_after(int product) { return product != 1; }

// The barriers in shared memory are there.
__device__ inline void arrive_at_tail_start() {
  asm volatile("bar.arrive 2, %0;" ::"n"(kTailThreads) : "memory");
}
__device__ inline void sync_tail_start() {
  asm volatile("bar.sync 2, %0;" ::"n"(kTailThreads) : "memory");
}

// The warp that brings x has read the words; before that the readers must not tell other blocks of
// a product, or a word could change unseen.
__device__ inline void arrive_with_words() {
  asm volatile("bar.arrive 3, %0;" ::"n"((kTailReaders + 1) * 32) : "memory");
}
__device__ inline void sync_with_words() {
  asm volatile("bar.sync 3, %0;" ::"n"((kTailReaders + 1) * 32) : "memory");
}

// The stages of all products in the order in which a block takes them, as the lanes of a warp see
// them: each has a group of 8 rows of its own.
class TailWalk {
 public:
  __device__ explicit TailWalk(const TailPlan& plan) : plan_(plan) { enter_product(); }

  __device__ bool valid() const { return product_ < plan_.count; }
  __device__ int units() const { return units_; }
  __device__ bool takes() const { return lane() < units_ * 2; }
  // Of this lane's group; 0 where the weight has no more rows.
  __device__ int bytes() const { return rows_left_ ? min(atoms_, kTailSlotAtoms) * kAtomBytes : 0; }
  __device__ const uint8_t* from() const { return from_; }

  __device__ void advance() {
    from_ += kTailSlotAtoms * kAtomBytes;
    atoms_ -= kTailSlotAtoms;
    if (atoms_ > 0) return;
    if (++tile_ < share_.tiles) return enter_tile();
    ++product_;
    enter_product();
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }

  __device__ void enter_product() {
    for (; valid(); ++product_) {
      tile_ = 0;
      share_ = TailShare(plan_.products[product_]);
      if (share_.tiles > 0) return enter_tile();
    }
  }
  __device__ void enter_tile() {
    const TailProduct& product = plan_.products[product_];
    const int group = share_.tile_begin(tile_) * 2 + lane();
    units_ = share_.tile_units(tile_);
    atoms_ = product.atoms;
    rows_left_ = group < product.groups;
    from_ = product.weight + int64_t{group} * product.atoms * kAtomBytes;
  }

  const TailPlan& plan_;
  const uint8_t* from_ = nullptr;
  TailShare share_;
  int product_ = 0, tile_ = 0, units_ = 0;
  int atoms_ = 0;  // from this stage on
  bool rows_left_ = false;
};

// One warp: streams the weights of all products, up to a full ring before the op before has ended.
struct TailWeights {
  static_assert(2 * kTailTile <= 32);

  const LayerTailArgs& args;
  const TailPlan& plan;
  TailMemory memory;
  uint64_t policy;
  uint32_t next = 0;  // slot of the next stage
  bool waited = false;
  bool live = true;

  __device__ void wait_for_rows() {
    if (waited) return;
    wait_for_all_before();
    waited = true;
    live = args.counts->num_rows > 0;
  }

  // Until the next slots are free. All lanes wait for all of them, not each for its own: racecheck
  // loses a wait that lanes make at different barriers at once. Asking for all before waiting for
  // one is faster, since most often they are free.
  __device__ void wait_free(int units) const {
    bool free = true;
    TailSlot slot = TailSlot::of(next);
#pragma unroll
    for (int unit = 0; unit < kTailTile; ++unit) {
      free &= memory.is_free_slot(slot) || unit >= units;
      slot.advance(1);
    }
    if (free) return;
    slot = TailSlot::of(next);
    for (int unit = 0; unit < units; ++unit) {
      memory.wait_free_slot(slot);
      slot.advance(1);
    }
  }

  __device__ void load(const TailWalk& walk) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    wait_free(walk.units());
    if (!walk.takes()) return;
    const TailSlot slot = TailSlot::of(next + lane / 2);
    uint64_t* full = memory.slot_full(slot.place);
    arrive_expecting(full, walk.bytes());
    if (walk.bytes() == 0) return;
    copy_bulk(memory.slot(slot.place) + lane % 2 * (kTailSlotAtoms * kAtomBytes), walk.from(),
              walk.bytes(), full, policy);
  }

  __device__ void run() {
    for (TailWalk walk(plan); walk.valid(); walk.advance()) {
      if (next + walk.units() > uint32_t{TailMemory::kSlots}) wait_for_rows();
      if (!live) break;
      const uint32_t end = next + walk.units();
      if (end > kTailInFlight) memory.wait_slot(TailSlot::of(end - 1 - kTailInFlight));
      load(walk);
      __syncwarp();
      next = end;
    }
    wait_for_rows();
    if (live) return;
    // What is under way must land before the block may end.
    for (uint32_t i = 0; i < next; ++i) memory.wait_slot(TailSlot::of(i));
  }
};

// One warp: brings the rows of x, those of a product when all blocks have stored what it reads.
struct TailRows {
  const LayerTailArgs& args;
  const TailPlan& plan;
  const TailMaps& maps;
  TailMemory memory;
  TailPlace next;

  __device__ void load(int product) {
    const CUtensorMap* map = maps.of(product);
    const bool leads = threadIdx.x % 32 == 0;
    for (int atom = 0; atom < plan.products[product].atoms; atom += kTailSlotAtoms) {
      if (leads) {
        uint64_t* full = memory.place_full(next.place);
        memory.wait_free_place(next);
        arrive_expecting(full, kTailSlotAtoms * memory.rows * 128);
        copy_box(memory.place(next.place), map, int3{0, 0, atom}, full, evict_normal_policy());
      }
      next.advance();
    }
  }

  __device__ void load_tiles(int product) {
    const TailShare share(plan.products[product]);
    for (int tile = 0; tile < share.tiles; ++tile) load(product);
  }

  __device__ void run() {
    wait_for_all_before();
    if (args.counts->num_rows <= 0) return;
    load_tiles(0);
    uint32_t before[TailPlan::kMax - 1];
#pragma unroll
    for (int p = 0; p < TailPlan::kMax - 1; ++p) {
      before[p] = read_grid_word(tail_word(args, p, tail_norms_after(p)));
    }
    __syncwarp();
    arrive_with_words();
#pragma unroll
    for (int p = 1; p < TailPlan::kMax; ++p) {
      if (p == plan.count) break;
      if (threadIdx.x % 32 == 0) {
        wait_for_grid(tail_word(args, p - 1, tail_norms_after(p - 1)), before[p - 1]);
      }
      __syncwarp();
      fence_copy_engine();
      load_tiles(p);
    }
  }
};

}  // namespace foretoken::cuda
