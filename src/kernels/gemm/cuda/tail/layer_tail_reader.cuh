#pragma once
#include "kernels/gemm/cuda/tail/layer_tail.cuh"
#include "kernels/rows/cuda/norm_row.cuh"

// The warps of a layer's tail that multiply, store and norm.
namespace foretoken::cuda {

// Barrier of these warps alone.
__device__ inline void sync_tail_readers() {
  asm volatile("bar.sync 1, %0;" ::"n"(kTailReaders * 32) : "memory");
}

// Where a stage has its x, and the stage that all warps must have left before: at first one that
// was never entered, whose barrier passes.
struct TailStage {
  TailPlace x;
  TailPlace left{kTailPlaces - kTailLead, 1};

  __device__ TailStage after() const {
    TailStage next = *this;
    next.x.advance();
    next.left.advance();
    return next;
  }
};

// A unit's chains of products: 16 rows of the weight times 8 rows of x. A chain is as fast as its
// products follow each other (25 cycles each), so all else is done between two of them: fragments
// are read kAhead steps of 16 k before they are multiplied, those of the next stage too.
struct TailUnit {
  static constexpr int kStepsOfAtom = kAtomK / 16;
  static constexpr int kSteps = kTailSlotAtoms * kStepsOfAtom;
  static constexpr int kAhead = kSteps / 2;

  // What this lane reads of a stage, as shared addresses.
  struct Source {
    uint32_t w;                  // first step
    uint32_t x[kTailSlotAtoms];  // first two steps of an atom
  };

  TailMemory memory;
  Source offsets;  // from where a slot and a place begin
  float c[1][1][4] = {};
  uint32_t w[kAhead][4];
  uint32_t x[kAhead / 2][4];  // of two steps
  uint32_t zero = unknown_zero();

  __device__ explicit TailUnit(const TailMemory& shared) : memory(shared) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int matrix = lane / 8;
    offsets.w = matrix % 2 * (kTailSlotAtoms * kAtomBytes) + atom_chunk(lane % 8, matrix / 2) * 16;
    // Lanes of rows that cannot be read the last one.
    const int row = min(lane % 8, memory.rows - 1);
#pragma unroll
    for (int atom = 0; atom < kTailSlotAtoms; ++atom) {
      const int line = atom * memory.rows + row;
      offsets.x[atom] = line * 128 + ((matrix ^ line % 8) << 4);
    }
  }

  __device__ Source source(TailSlot slot, const TailStage& stage) const {
    Source from;
    from.w = shared_address(memory.slot(slot.place)) + offsets.w;
    const uint32_t place = shared_address(memory.place(stage.x.place));
#pragma unroll
    for (int atom = 0; atom < kTailSlotAtoms; ++atom) from.x[atom] = place + offsets.x[atom];
    return from;
  }

  // The swizzle turns steps of an atom into an exclusive or.
  __device__ void read_w(int step, const Source& from) {
    const int atom = step / kStepsOfAtom;
    load_matrices(w[step % kAhead], (from.w ^ step % kStepsOfAtom * 32) + atom * kAtomBytes);
  }
  __device__ void read_x(int pair, const Source& from) {
    load_matrices(x[pair % (kAhead / 2)], from.x[pair / 2] ^ pair % 2 * 64);
  }
  __device__ void multiply(int step) {
    const uint32_t(&b)[4] = x[step / 2 % (kAhead / 2)];
    multiply_step(c[0][0], w[step % kAhead], b[step % 2 * 2], b[step % 2 * 2 + 1]);
  }
  // Fragments for this step; those of x after the second step of a pair.
  __device__ void read(int step, const Source& from) {
    read_w(step, from);
    if (step % 2 != 0) read_x(step / 2, from);
  }

  // Stages of a whole slot, the first one in `at`, then every step-th.
  __device__ void run_whole(int stages, TailSlot& at, int step, TailStage& stage) {
    wait(at, stage);
    Source from = source(at, stage);
#pragma unroll
    for (int s = 0; s < kAhead; ++s) read(s, from);
    for (; stages > 1; --stages) {
      const TailSlot slot = at;
      const TailStage before = stage;
      at.advance(step);
      stage = stage.after();
      const bool ready = is_ready(at, stage);
#pragma unroll
      for (int s = 0; s < kAhead; ++s) {
        multiply(s);
        read(s + kAhead, from);
      }
      if (!ready) wait(at, stage);
      from = source(at, stage);
#pragma unroll
      for (int s = 0; s < kAhead; ++s) {
        multiply(s + kAhead);
        if (s == 0) leave(slot, before, bits());
        read(s, from);
      }
    }
#pragma unroll
    for (int s = 0; s < kAhead; ++s) {
      multiply(s);
      read(s + kAhead, from);
    }
#pragma unroll
    for (int s = kAhead; s < kSteps; ++s) {
      multiply(s);
      if (s == kAhead) leave(at, stage, bits());
    }
    at.advance(step);
    stage = stage.after();
  }

  // Every step-th slot from `at` on and the next places along k.
  __device__ void run(const TailProduct& product, TailSlot at, int step, TailStage& stage) {
    const int stages = product.atoms / kTailSlotAtoms;
    if (stages > 0) run_whole(stages, at, step, stage);
    const int rest = product.atoms % kTailSlotAtoms;
    if (rest == 0) return;
    wait(at, stage);
    const Source from = source(at, stage);
    uint32_t seen = 0;
#pragma unroll
    for (int s = 0; s < kSteps - kStepsOfAtom; ++s) {
      if (s / kStepsOfAtom >= rest) break;
      if (s % 2 == 0) read_x(s / 2, from);
      read_w(s, from);
      multiply(s);
      seen |= w[s % kAhead][3] | x[s / 2 % (kAhead / 2)][3];
    }
    leave(at, stage, seen);
    stage = stage.after();
  }

 private:
  // In this order: see TailMemory.
  __device__ void wait(TailSlot slot, const TailStage& stage) const {
    memory.wait_left(stage.left);
    memory.wait_place(stage.x);
    memory.wait_slot(slot);
  }
  __device__ bool is_ready(TailSlot slot, const TailStage& stage) const {
    const bool left = memory.was_left(stage.left);
    const bool x = memory.has_place(stage.x);
    const bool w = memory.has_slot(slot);
    return left && x && w;
  }
  // Of all fragments in the registers: the compiler changes the order of reads.
  __device__ uint32_t bits() const {
    uint32_t all = 0;
#pragma unroll
    for (int s = 0; s < kAhead; ++s) all |= w[s][3] | x[s / 2][3];
    return all;
  }
  // read: see arrive_after_reads.
  __device__ void leave(TailSlot slot, const TailStage& stage, uint32_t read) const {
    __syncwarp();
    arrive_after_reads(memory.slot_empty(slot.place), read, zero);
    if (threadIdx.x % 32 == 0) arrive_after_reads(memory.place_empty(stage.x.place), read, zero);
  }
};

// A row's root mean square norm by the readers, with the bits of the norm op: each thread stands
// for Threads / 256 of its threads.
struct TailNorm {
  static constexpr int kReaderThreads = kTailReaders * 32;
  static constexpr int kMaxVectors = 4;  // groups of four that a thread of the norm op has
  static constexpr int kMaxTurns = 2;    // threads of the norm op that one stands for
  static constexpr int kMaxHidden = 4 * kMaxVectors * kMaxTurns * kReaderThreads;

  const LayerTailArgs& args;
  float* warp_sums;  // [16] in shared memory
  int threads;       // of the norm op
  float4 weight[kMaxTurns][kMaxVectors];

  __device__ TailNorm(const LayerTailArgs& tail, float* sums)
      : args(tail), warp_sums(sums), threads(tail.hidden <= 2048 ? 256 : 512) {}

  // f(turn, group, first element), for each group of four.
  template <class F>
  __device__ void for_each(const F& f) const {
#pragma unroll
    for (int turn = 0; turn < kMaxTurns; ++turn) {
#pragma unroll
      for (int j = 0; j < kMaxVectors; ++j) {
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
    float4 values[kMaxTurns][kMaxVectors] = {};
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
  __device__ float scale_of(const float4 (&values)[kMaxTurns][kMaxVectors]) const {
#pragma unroll
    for (int turn = 0; turn < kMaxTurns; ++turn) {
      float squares = 0;
#pragma unroll
      for (int j = 0; j < kMaxVectors; ++j) {
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
  uint32_t slots = 0;  // of the tiles before
  TailStage stage{};

  __device__ void store(int product, int unit, const float (&c)[1][1][4]) const {
    const LayerTailOps ops = layer_tail_ops(args);
    const int n = unit * kTileN;
    if (product == 1) {
      GemmArgs all = ops.gate_up;
      all.n = static_cast<int32_t>(packed_rows(all.n, WeightOrder::kGateUp));
      return StoreGated{args.inner}.take_tiles(all, live, 0, n, 0, c);
    }
    if (product == 3) return StoreOutput{ops.qkv.n}.take_tiles(ops.qkv, live, 0, n, 0, c);
    if (product == 2) return StoreOutput{ops.down.n}.take_tiles(ops.down, live, 0, n, 0, c);
    StoreOutput{ops.o.n}.take_tiles(ops.o, live, 0, n, 0, c);
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
        TailUnit unit(memory);
        unit.run(product, TailSlot::of(slots + warp), units, stage);
        store(p, share.tile_begin(tile) + warp, unit.c);
      } else {
        pass_by(product);
      }
      slots += product.stages() * units;
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
