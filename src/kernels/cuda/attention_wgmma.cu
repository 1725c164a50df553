#include <algorithm>

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

template <int Dim>
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

  __device__ void run(TileWalk& walk) {
    int parity = 1;
    for (walk.next(); walk.tile.num_tokens > 0; walk.next(), parity ^= 1) {
      const QueryTile& tile = walk.tile;
      wait_barrier(&barriers.q_empty, parity);
      load_queries(tile);
      int next = entry_of(tile, tile.first_kv / kUnit);
      for (int unit = tile.first_kv / kUnit; unit <= tile.last_kv / kUnit; ++unit) {
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

template <int Dim>
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

  __device__ void attend(const QueryTile& tile) {
    const RowLimits limits = row_limits<Dim>(args, tile);
    Partial<Dim> running;
    Partial<Dim> part;
    const int last = tile.last_kv / kUnit;
    for (int unit = tile.first_kv / kUnit; unit <= last; ++unit) {
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
      merge_into<Dim>(running, part);
      part = Partial<Dim>{};
    }
    store_result<Dim>(args, tile, running);
  }

  __device__ void run(TileWalk& walk) {
    int parity = 0;
    for (walk.next(); walk.tile.num_tokens > 0; walk.next(), parity ^= 1) {
      wait_barrier(&barriers.q_full, parity);
      attend(walk.tile);
      __syncwarp();
      if (threadIdx.x % 32 == 0) arrive(&barriers.q_empty);
    }
  }
};

template <int Dim>
__global__ void __launch_bounds__(kThreads, 1)
    attention_wgmma_kernel(AttentionArgs args, TileShape shape) {
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
  TileWalk walk = tiles_of_block(args, shape);
  __syncthreads();
  const int warp = threadIdx.x / 32;
  if (warp >= kReaders) {
    lower_registers<40>();
    Loader<Dim>{args, ring_memory, q_tile, barriers, warp - kReaders}.run(walk);
  } else {
    raise_registers<232>();
    Reader<Dim>{args, scoring_of(args), shared_address(ring_memory),
                shared_address(q_tile) + warp / 4 * 64 * 128, barriers}
        .run(walk);
  }
}

template <int Dim>
void launch(const AttentionArgs& args, cudaStream_t stream) {
  using S = BlockShape<Dim>;
  const auto kernel = attention_wgmma_kernel<Dim>;
  static const cudaError_t raised =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kBytes);
  if (raised != cudaSuccess) return;
  const TileShape shape = tiles_for(args, kQueryRows);
  const dim3 grid(head_chunks(args, shape), ceil_div(args.max_rows, shape.tokens));
  launch_kernel(kernel, grid, kThreads, S::kBytes, stream, args, shape);
}

}  // namespace

bool launch_attention_wgmma(const AttentionArgs& args, cudaStream_t stream) {
  if (args.kv.head_dim == 128) {
    launch<128>(args, stream);
  } else if (args.kv.head_dim == 64) {
    launch<64>(args, stream);
  } else {
    return false;
  }
  return true;
}

}  // namespace foretoken::cuda
