#include <algorithm>

#include "kernels/cuda/attention_partials.cuh"
#include "kernels/cuda/attention_rows.cuh"
#include "kernels/cuda/attention_wgmma.cuh"
#include "kernels/cuda/pipeline.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kGroupsOfWarps = 2;  // warpgroups that compute, 64 query rows each
constexpr int kQueryRows = kGroupsOfWarps * 64;
constexpr int kReaders = kGroupsOfWarps * 4;
constexpr int kLoaders = 4;  // warps that copy
constexpr int kThreads = (kReaders + kLoaders) * 32;
constexpr int kLag = 3;  // units under way before the first must be there

template <int Dim>
struct BlockShape {
  static constexpr int kUnitBytes = kUnit * Dim * 2;
  static constexpr int kQBytes = kQueryRows * Dim * 2;
  static constexpr int kStages = 10;
  static constexpr int kBytes = kStages * kUnitBytes + kQBytes + 1024;  // the start is rounded
};

struct Barriers {
  uint64_t full[10], empty[10];
  uint64_t q_full, q_empty;
};

// Address of chunk c of row r in a tile of `rows` rows: see swizzled_tile.
__device__ inline uint32_t swizzled_chunk(int rows, int r, int c) {
  return c / 8 * rows * 128 + r * 128 + ((c % 8 ^ r % 8) << 4);
}

template <int Dim>
struct Ring {
  int stage = 0;
  int parity = 0;
  __device__ void advance() {
    if (++stage == BlockShape<Dim>::kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// The tiles of a block, and which of their splits it takes: its part is so many consecutive ones.
// The first part folds its own, since they come first in every row; the others leave theirs.
// Without Cut, which saves registers, all of them.
template <bool Cut>
struct PartWalk {
  TileWalk tiles;
  const LongCut& cut;
  int part;
  int first_of_part = 0;  // unit
  int last_of_part = 0;
  int folded = -1;  // the last split of the first part; -1: the tile is not cut

  __device__ bool next() {
    do tiles.next();
    while (tiles.tile.num_tokens > 0 && !take(tiles.tile));
    return tiles.tile.num_tokens > 0;
  }
  __device__ int first_unit() const { return Cut ? first_of_part : tiles.tile.first_kv / kUnit; }
  __device__ int last_unit() const { return Cut ? last_of_part : tiles.tile.last_kv / kUnit; }
  __device__ bool is_cut() const { return Cut && folded >= 0; }

 private:
  __device__ bool take(const QueryTile& tile) {
    if constexpr (!Cut) return true;
    const int first = tile.first_kv / kAttentionSplit;
    const int last = tile.last_kv / kAttentionSplit;
    const int each = ceil_div(last - first + 1, cut.parts);
    first_of_part = tile.first_kv / kUnit;
    last_of_part = tile.last_kv / kUnit;
    folded = first + each - 1;
    if (folded == last || last - folded + 1 > cut.splits) {
      folded = -1;
      return part == 0;
    }
    const int begin = first + part * each;
    first_of_part = max(first_of_part, begin * kSplitUnits);
    last_of_part = min(last_of_part, (begin + each) * kSplitUnits - 1);
    return begin <= last;
  }
};

template <int Dim, bool Cut>
struct Loader {
  using S = BlockShape<Dim>;
  static constexpr int kChunks = Dim / 8;
  static constexpr int kRows = kUnit / kLoaders;  // of a warp in each unit
  const AttentionArgs& args;
  char* ring_memory;
  char* q_tile;
  Barriers& barriers;
  int warp;
  Ring<Dim> ring{};
  Ring<Dim> ready{};  // next unit to hand over
  int waiting = 0;    // units that were copied and not handed over

  __device__ void hand_over() {
    fence_async_proxy();
    arrive(&barriers.full[ready.stage]);
    ready.advance();
    --waiting;
  }

  __device__ void load_unit(const void* cache, int my_entry) {
    wait_barrier(&barriers.empty[ring.stage], ring.parity ^ 1);
    char* to = ring_memory + ring.stage * S::kUnitBytes;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < kChunks / 2; ++i) {
      const int row = (i * 32 + lane) / kChunks;
      const int chunk = (i * 32 + lane) % kChunks;
      const int entry = __shfl_sync(0xffffffffu, my_entry, row);
      copy16_async(
          to + swizzled_chunk(kUnit, warp * kRows + row, chunk),
          static_cast<const __nv_bfloat16*>(cache) + int64_t{max(entry, 0)} * Dim + chunk * 8,
          entry >= 0);
    }
    commit_copies();
    ring.advance();
    if (++waiting > kLag) {
      wait_copies<kLag>();
      hand_over();
    }
  }

  __device__ void load_queries(const QueryTile& tile) {
    const int thread = threadIdx.x - kReaders * 32;
    for (int i = thread; i < kQueryRows * kChunks; i += kLoaders * 32) {
      const int m = i / kChunks;
      const int token = m / tile.heads;
      const bool valid = token < tile.num_tokens;
      const int64_t head = int64_t{tile.first_row + (valid ? token : 0)} * args.num_heads +
                           tile.first_head + m % tile.heads;
      copy16_async(q_tile + swizzled_chunk(kQueryRows, m, i % kChunks),
                   static_cast<const __nv_bfloat16*>(args.q) + head * Dim + i % kChunks * 8, valid);
    }
    commit_copies();
    wait_copies<0>();
    fence_async_proxy();
    arrive(&barriers.q_full);
  }

  __device__ int entry_of(const QueryTile& tile, int unit) const {
    const int lane = threadIdx.x % 32;
    const int position = unit * kUnit + warp * kRows + lane;
    const bool seen = lane < kRows && position >= tile.first_kv && position <= tile.last_kv;
    return seen ? static_cast<int>(kv_entry(args, tile.slot, position, tile.kv_head)) : -1;
  }

  __device__ void run(PartWalk<Cut>& walk) {
    int parity = 1;
    for (; walk.next(); parity ^= 1) {
      const QueryTile& tile = walk.tiles.tile;
      wait_barrier(&barriers.q_empty, parity);
      load_queries(tile);
      int next = entry_of(tile, walk.first_unit());
      for (int unit = walk.first_unit(); unit <= walk.last_unit(); ++unit) {
        const int entry = next;
        next = entry_of(tile, unit + 1);
        load_unit(args.kv.k, entry);
        load_unit(args.kv.v, entry);
      }
      wait_copies<0>();
      while (waiting > 0) hand_over();
    }
  }
};

template <int Dim, bool Cut>
struct Reader {
  using S = BlockShape<Dim>;
  const AttentionArgs& args;
  Scoring scoring;
  uint32_t ring_memory;
  uint32_t q_tile;  // of this warpgroup
  Barriers& barriers;
  Ring<Dim> ring{};

  __device__ void release(int stage) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(&barriers.empty[stage]);
  }

  __device__ void multiply_qk(float (&scores)[kUnit / 2], uint32_t k_tile) const {
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < Dim / 16; ++d) {
      const int column = d / 4;
      const uint32_t at = d % 4 * 32;
      wgmma<kUnit>(scores, swizzled_tile(q_tile + column * kQueryRows * 128 + at, 0),
                   swizzled_tile(k_tile + column * kUnit * 128 + at, 0), d > 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
    pin_registers(scores);
  }

  __device__ void multiply_pv(float (&values)[Dim / 2], const float (&weights)[kUnit / 2],
                              uint32_t v_tile) const {
    uint32_t a[kUnit / 16][4];
#pragma unroll
    for (int n = 0; n < kUnit / 16; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        a[n][i] = pack_bf16(weights[n * 8 + i * 2], weights[n * 8 + i * 2 + 1]);
      }
    }
    pin_registers(values);
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < kUnit / 16; ++n) {
      wgmma_values(values, a[n], swizzled_tile(v_tile + n * 16 * 128, kUnit * 128));
    }
    wgmma_commit();
    wgmma_wait<0>();
    pin_registers(values);
  }

  // Leaves a partial result of a cut tile at the place of a split.
  __device__ void leave(const PartWalk<Cut>& walk, int split, const Partial<Dim>& part) const {
    const PartialSpace& space = walk.cut.space;
    for_each_row<Dim>(walk.tiles.tile, [&](int i, int row, int head) {
      const int64_t index = place(walk.cut, row) + head * walk.cut.splits + split - walk.folded;
      if (threadIdx.x % 4 == 0) {
        *space.state(index) = make_float2(part.highest[i], part.weights[i]);
      }
      float* to = space.values(index) + threadIdx.x % 4 * 2;
#pragma unroll
      for (int d = 0; d < Dim / 8; ++d) {
        *reinterpret_cast<float2*>(to + d * 8) =
            make_float2(part.values[d][i * 2], part.values[d][i * 2 + 1]);
      }
    });
  }

  __device__ int place(const LongCut& cut, int row) const {
    return static_cast<int>(cut.space.long_begin) + row * args.num_heads * cut.splits;
  }

  __device__ void tell_places(const PartWalk<Cut>& walk) const {
    const QueryTile& tile = walk.tiles.tile;
    for (int i = static_cast<int>(threadIdx.x); i < tile.num_tokens; i += kReaders * 32) {
      const int row = tile.first_row + i;
      walk.cut.space.rows()[row] = {place(walk.cut, row), walk.cut.splits, walk.folded, 0};
    }
  }

  __device__ void attend(const PartWalk<Cut>& walk) {
    const QueryTile& tile = walk.tiles.tile;
    const bool folds = !walk.is_cut() || walk.part == 0;
    const RowLimits limits = row_limits<Dim>(args, tile);
    Partial<Dim> running;
    Partial<Dim> part;
    const int last = walk.last_unit();
    for (int unit = walk.first_unit(); unit <= last; ++unit) {
      const int k_stage = ring.stage;
      wait_barrier(&barriers.full[k_stage], ring.parity);
      ring.advance();
      const int v_stage = ring.stage;
      const int v_parity = ring.parity;
      ring.advance();
      // The warps of a warpgroup multiply together, whatever each of them sees.
      const bool seen = unit * kUnit <= limits.group_last;
      Scores<Dim> scores;
      auto& flat_scores = reinterpret_cast<float(&)[kUnit / 2]>(scores);
      multiply_qk(flat_scores, ring_memory + k_stage * S::kUnitBytes);
      release(k_stage);
      if (scoring.capped) cap_products<Dim>(scores, scoring);
      if (limits.see_all(unit * kUnit)) {
        apply_softmax<Dim, 2, false>(part, scores, unit * kUnit, limits, scoring.scale);
      } else if (seen) {
        apply_softmax<Dim>(part, scores, unit * kUnit, limits, scoring.scale);
      } else {
#pragma unroll
        for (int i = 0; i < kUnit / 2; ++i) flat_scores[i] = 0;
      }
      wait_barrier(&barriers.full[v_stage], v_parity);
      multiply_pv(reinterpret_cast<float(&)[Dim / 2]>(part.values), flat_scores,
                  ring_memory + v_stage * S::kUnitBytes);
      release(v_stage);
      if (!ends_split(unit) && unit < last) continue;
      finish<Dim>(part);
      if (folds) {
        merge_into<Dim>(running, part);
      } else {
        leave(walk, unit / kSplitUnits, part);
      }
      part = Partial<Dim>{};
    }
    if (!walk.is_cut()) {
      store_result<Dim>(args, tile, running);
    } else if (walk.part == 0) {
      leave(walk, walk.folded, running);
      if (walk.tiles.head_chunk == 0) tell_places(walk);
    }
  }

  __device__ void run(PartWalk<Cut>& walk) {
    int parity = 0;
    for (; walk.next(); parity ^= 1) {
      wait_barrier(&barriers.q_full, parity);
      attend(walk);
      __syncwarp();
      if (threadIdx.x % 32 == 0) arrive(&barriers.q_empty);
    }
  }
};

template <int Dim, bool Cut>
__global__ void __launch_bounds__(kThreads, 1)
    attention_wgmma_kernel(const __grid_constant__ AttentionArgs args, TileShape shape,
                           const __grid_constant__ LongCut cut) {
  extern __shared__ __align__(128) char memory[];
  __shared__ Barriers barriers;
  using S = BlockShape<Dim>;
  char* ring_memory = memory + (1024 - shared_address(memory) % 1024) % 1024;
  char* q_tile = ring_memory + S::kStages * S::kUnitBytes;
  if (threadIdx.x == 0) {
    for (int i = 0; i < S::kStages; ++i) {
      init_barrier(&barriers.full[i], kLoaders * 32);
      init_barrier(&barriers.empty[i], kReaders);
    }
    init_barrier(&barriers.q_full, kLoaders * 32);
    init_barrier(&barriers.q_empty, kReaders);
  }
  wait_for_previous();
  let_next_start();
  PartWalk<Cut> walk{tiles_of_block(args, shape), cut, static_cast<int>(blockIdx.z)};
  __syncthreads();
  const int warp = threadIdx.x / 32;
  if (warp >= kReaders) {
    lower_registers<40>();
    Loader<Dim, Cut>{args, ring_memory, q_tile, barriers, warp - kReaders}.run(walk);
  } else {
    raise_registers<232>();
    Reader<Dim, Cut>{args, scoring_of(args), shared_address(ring_memory),
                     shared_address(q_tile) + warp / 4 * 64 * 128, barriers}
        .run(walk);
  }
}

template <int Dim, bool Cut>
void launch(const AttentionArgs& args, const LongCut& cut, cudaStream_t stream) {
  using S = BlockShape<Dim>;
  const auto kernel = attention_wgmma_kernel<Dim, Cut>;
  const cudaError_t raised =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kBytes);
  if (raised != cudaSuccess) return;
  const TileShape shape = tiles_for(args, kQueryRows);
  const dim3 grid(head_chunks(args, shape), ceil_div(args.max_rows, shape.tokens), cut.parts);
  launch_kernel(kernel, grid, kThreads, S::kBytes, stream, args, shape, cut);
}

}  // namespace

int attention_wgmma_blocks(const AttentionArgs& args) {
  const TileShape shape = tiles_for(args, kQueryRows);
  return head_chunks(args, shape) * ceil_div(args.max_rows, shape.tokens);
}

bool launch_attention_wgmma(const AttentionArgs& args, const LongCut& cut, cudaStream_t stream) {
  const bool cuts = cut.parts > 1;
  if (args.kv.head_dim == 128) {
    cuts ? launch<128, true>(args, cut, stream) : launch<128, false>(args, cut, stream);
  } else if (args.kv.head_dim == 64) {
    cuts ? launch<64, true>(args, cut, stream) : launch<64, false>(args, cut, stream);
  } else {
    return false;
  }
  return true;
}

}  // namespace foretoken::cuda
