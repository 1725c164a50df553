#pragma once
#include "kernels/cuda/layer_tail.cuh"
#include "kernels/cuda/norm_row.cuh"

// The warps of a layer's tail that multiply, store and norm.
namespace foretoken::cuda {

// Barrier of these warps alone.
__device__ inline void sync_tail_readers() {
  asm volatile("bar.sync 1, %0;" ::"n"(kTailReaders * 32) : "memory");
}

// Where a stage has its x, and the stage that all warps must have left before, if there is one.
struct TailStage {
  TailPlace x, left;
  int count = 0;  // of stages before; no longer counted when some follow
  bool follows = false;

  __device__ TailStage after() const {
    TailStage next = *this;
    next.x.advance();
    if (follows) {
      next.left.advance();
    } else {
      next.follows = ++next.count == kTailLead;
    }
    return next;
  }
};

// A unit's chains of products: 16 rows of the weight times 8 rows of x.
struct TailUnit {
  static constexpr int kSteps = kAtomK / 16;
  struct Fragments {
    uint32_t w[kSteps][4];
    uint32_t x[kSteps][2];
  };

  static_assert(kTailSlotAtoms % 2 == 0);

  TailMemory memory;
  float c[1][1][4] = {};

  __device__ void read(Fragments& to, uint32_t slot, int place, int atom) const {
    const uint4* w = reinterpret_cast<const uint4*>(memory.slot(slot)) + atom * kAtomChunks;
    const uint8_t* x = memory.place(place);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int matrix = lane / 8;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      load_weight_step(to.w[step], w, kTailSlotAtoms * kAtomChunks, step);
    }
    // Lanes of rows that cannot be read the last one.
    const int line = atom * memory.rows + min(lane % 8, memory.rows - 1);
#pragma unroll
    for (int pair = 0; pair < kSteps / 2; ++pair) {
      const int chunk = pair * 4 + matrix;
      uint32_t b[4];
      load_matrices(b, shared_address(x + line * 128 + ((chunk ^ line % 8) << 4)));
#pragma unroll
      for (int i = 0; i < 4; ++i) to.x[pair * 2 + i / 2][i % 2] = b[i];
    }
  }

  __device__ void multiply(const Fragments& f) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      multiply_step(c[0][0], f.w[step], f.x[step][0], f.x[step][1]);
    }
  }

  // Slots slot, slot + step, ... and the next places along k.
  __device__ void run(const TailProduct& product, uint32_t slot, uint32_t step, TailStage& stage) {
    int atoms = product.atoms;
    Fragments even, odd;  // each is read while the other one is multiplied
    wait(slot, stage);
    read(even, slot, stage.x.place, 0);
    for (; atoms >= kTailSlotAtoms; atoms -= kTailSlotAtoms) {
      const bool more = atoms > kTailSlotAtoms;
      const TailStage next = stage.after();
      const bool ready = more && is_ready(slot + step, next);
#pragma unroll
      for (int i = 1; i < kTailSlotAtoms; ++i) {
        read(i % 2 == 0 ? even : odd, slot, stage.x.place, i);
        multiply(i % 2 == 0 ? odd : even);
      }
      if (more) {
        if (!ready) wait(slot + step, next);
        read(even, slot + step, next.x.place, 0);
      }
      multiply(odd);
      leave(slot, stage);
      slot += step;
      stage = next;
    }
    if (atoms == 0) return;
    multiply(even);
    for (int i = 1; i < atoms; ++i) {
      read(even, slot, stage.x.place, i);
      multiply(even);
    }
    leave(slot, stage);
    stage = stage.after();
  }

 private:
  // In this order: see TailMemory.
  __device__ void wait(uint32_t slot, const TailStage& stage) const {
    if (stage.follows) memory.wait_left(stage.left);
    memory.wait_place(stage.x);
    memory.wait_slot(slot);
  }
  __device__ bool is_ready(uint32_t slot, const TailStage& stage) const {
    const bool left = !stage.follows || memory.was_left(stage.left);
    const bool x = memory.has_place(stage.x);
    const bool w = memory.has_slot(slot);
    return left && x && w;
  }
  __device__ void leave(uint32_t slot, const TailStage& stage) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      arrive(memory.slot_empty(slot));
      arrive(memory.place_empty(stage.x.place));
    }
  }
};

// A row's root mean square norm by the readers, with the bits of the norm op: each thread stands
// for Threads / 256 of its threads.
struct TailNorm {
  static constexpr int kReaderThreads = kTailReaders * 32;
  static constexpr int kMostVectors = 4;  // groups of four that a thread of the norm op has
  static constexpr int kMostTurns = 2;    // threads of the norm op that one stands for
  static constexpr int kMostHidden = 4 * kMostVectors * kMostTurns * kReaderThreads;

  const LayerTailArgs& args;
  float* warp_sums;  // [16] in shared memory
  int threads;       // of the norm op
  float4 weight[kMostTurns][kMostVectors];

  __device__ TailNorm(const LayerTailArgs& tail, float* sums)
      : args(tail), warp_sums(sums), threads(tail.hidden <= 2048 ? 256 : 512) {}

  // f(turn, group, first element), for each group of four.
  template <class F>
  __device__ void for_each(const F& f) const {
#pragma unroll
    for (int turn = 0; turn < kMostTurns; ++turn) {
#pragma unroll
      for (int j = 0; j < kMostVectors; ++j) {
        const int thread = turn * kReaderThreads + static_cast<int>(threadIdx.x);
        const int at = (thread + j * threads) * 4;
        if (thread < threads && at < args.hidden) f(turn, j, at);
      }
    }
  }

  // Constant, so that they are read while others still compute.
  __device__ void load_weight(const float* from) {
    for_each([&](int turn, int j, int at) {
      weight[turn][j] = *reinterpret_cast<const float4*>(from + at);
    });
  }

  // residual[row] += delta[row]; normed[row] = norm of that, times weight. Without `stores` nothing
  // comes of it.
  __device__ void run(int row, bool stores) const {
    float* residual = args.residual + int64_t{row} * args.hidden;
    const float* delta = args.delta + int64_t{row} * args.hidden;
    float4 values[kMostTurns][kMostVectors] = {};
    for_each([&](int turn, int j, int at) {
      const float4 a = __ldcg(reinterpret_cast<const float4*>(residual + at));
      const float4 b = __ldcg(reinterpret_cast<const float4*>(delta + at));
      values[turn][j] = {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
    });
    const float scale = scale_of(values);
    if (!stores) return;
    for_each([&](int turn, int j, int at) {
      *reinterpret_cast<float4*>(residual + at) = values[turn][j];
    });
    auto* out = static_cast<__nv_bfloat16*>(args.normed) + int64_t{row} * args.hidden;
    for_each([&](int turn, int j, int at) {
      store4(out + at, normed(values[turn][j], scale, weight[turn][j]));
    });
  }

 private:
  __device__ float scale_of(const float4 (&values)[kMostTurns][kMostVectors]) const {
#pragma unroll
    for (int turn = 0; turn < kMostTurns; ++turn) {
      float squares = 0;
#pragma unroll
      for (int j = 0; j < kMostVectors; ++j) {
        squares = add_squares(squares, values[turn][j]);
      }
      for (int offset = 16; offset > 0; offset /= 2) {
        squares += __shfl_xor_sync(0xffffffffu, squares, offset);
      }
      if (threadIdx.x % 32 == 0) warp_sums[turn * kTailReaders + threadIdx.x / 32] = squares;
    }
    sync_tail_readers();
    float sum = 0;
    for (int i = 0; i < threads / 32; ++i) sum += warp_sums[i];
    return norm_scale(sum, args.hidden, args.eps);
  }
};

struct TailReader {
  const LayerTailArgs& args;
  const TailPlan& plan;
  TailMemory memory;
  float* warp_sums;
  int live = 0;
  uint32_t slot = 0;  // of the next tile
  TailStage stage{};

  __device__ void store(int product, int unit, const float (&c)[1][1][4]) const {
    const LayerTailOps ops = layer_tail_ops(args);
    const int n = unit * kTileN;
    if (product == 1) {
      GemmArgs all = ops.gate_up;
      all.n = static_cast<int32_t>(packed_rows(all.n, WeightOrder::kGateUp));
      return StoreGated{args.inner}.take_tiles(all, live, 0, n, 0, c);
    }
    if (product == 3) return StoreOutput().take_tiles(ops.qkv, live, 0, n, 0, c);
    if (product == 2) return StoreOutput().take_tiles(ops.down, live, 0, n, 0, c);
    StoreOutput().take_tiles(ops.o, live, 0, n, 0, c);
  }

  // A warp without a unit keeps in step with the others.
  __device__ void pass_by(const TailProduct& product) {
    for (int i = 0; i < product.stages(); ++i) {
      memory.wait_place(stage.x);
      __syncwarp();
      if (threadIdx.x % 32 == 0) arrive(memory.place_empty(stage.x.place));
      stage = stage.after();
    }
  }

  __device__ void multiply(int p) {
    const TailProduct& product = plan.products[p];
    const TailShare share(product);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    for (int tile = 0; tile < share.tiles; ++tile) {
      const int units = share.tile_units(tile);
      if (warp < units) {
        TailUnit unit{memory};
        unit.run(product, slot + warp, units, stage);
        store(p, share.tile_begin(tile) + warp, unit.c);
      } else {
        pass_by(product);
      }
      slot += product.stages() * units;
    }
  }

  // After a product that is not the last one: tells the other blocks, and norms this block's row.
  __device__ void pass_on(int p, uint32_t before) {
    const bool leads = threadIdx.x == 0;
    const int row = static_cast<int>(blockIdx.x);
    fence_copy_engine();
    sync_tail_readers();
    if (leads) arrive_at_grid(tail_word(args, p, false), static_cast<int>(gridDim.x), row == 0);
    if (!tail_norms_after(p)) return;
    // All blocks take a row, though most for nothing: a block that seldom did would wait longer for
    // the instructions than for the row, and all wait for the one that has it.
    TailNorm norm(args, warp_sums);
    norm.load_weight(p == 0 ? args.mlp_norm : args.next_norm);
    if (leads) wait_for_grid(tail_word(args, p, false), before);
    sync_tail_readers();
    norm.run(row % live, row < live);
    fence_copy_engine();
    sync_tail_readers();
    if (leads && row < live) arrive_at_grid(tail_word(args, p, true), live, row == 0);
  }

  __device__ void run() {
    wait_for_all_before();
    live = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
    if (live == 0) return;
    const uint32_t after_o = read_grid_word(tail_word(args, 0, false));
    const uint32_t after_down = read_grid_word(tail_word(args, 2, false));
    for (int p = 0; p < plan.count; ++p) {
      multiply(p);
      if (p == 0) sync_with_words();
      if (p + 1 < plan.count) pass_on(p, p == 0 ? after_o : after_down);
    }
  }
};

}  // namespace foretoken::cuda
