#pragma once
#include <cstddef>

#include "kernels/attention/cuda/attention_rows.cuh"
#include "kernels/attention/cuda/attention_wgmma.cuh"
#include "kernels/attention/cuda/long/attention_long.cuh"
#include "kernels/attention/cuda/long/attention_long_sums.cuh"

// The warpgroups that compute in the attention of long runs.
namespace foretoken::cuda {

// The same in all lanes, which the compiler then keeps where descriptors are read from.
__device__ inline int uniform(int value) { return __shfl_sync(0xffffffffu, value, 0); }

// The scores of a unit are weighed while the tensor cores sum the values of the one before:
// J. Shah et al., "FlashAttention-3", 2024.
template <int Dim, bool Capped, bool Codes, bool Wide>
struct LongReader {
  using Team = LongTeam<Wide>;
  using State = LongState<Wide>;
  using S = LongShape<Dim, Wide>;
  using Kept = KeptSums<Dim, Team::kReaders * 32>;
  const AttentionArgs& args;
  const LongCut& cut;
  Scoring scoring;
  uint32_t ring_memory;
  uint32_t queries;  // of this warpgroup, in the first place
  const State& state;
  uint32_t barriers;  // address of `state`
  bool leads;         // its warp
  RingPlace<Team::kStages> ring{};

  __device__ void release(int stage) {
    __syncwarp();
    const auto empty = static_cast<uint32_t>(offsetof(State, empty));
    if (leads) arrive(barriers + empty + stage * 8);
  }

  __device__ int next_stage() {
    const int stage = ring.place;
    const auto full = static_cast<uint32_t>(offsetof(State, full));
    wait_barrier(barriers + full + stage * 8, ring.parity);
    ring.advance();
    return stage;
  }

  // Starts the products of the queries with a unit's keys.
  __device__ void start_qk(float (&scores)[kUnit / 2], uint32_t q_tile, int stage) const {
    const uint64_t q = swizzled_tile(q_tile, 0);
    const uint64_t k = swizzled_tile(ring_memory + uniform(stage) * S::kUnitBytes, 0);
#pragma unroll
    for (int d = 0; d < Dim / 16; ++d) {
      const int column = d / 4;
      const int at = d % 4 * 32;
      wgmma<kUnit>(scores, q + (column * Team::kQueryRows * 128 + at) / 16,
                   k + (column * kUnit * 128 + at) / 16, d > 0);
    }
    wgmma_commit();
  }

  // Starts those of the weights with its values. Without `add` the sums start at zero.
  __device__ void start_pv(float (&values)[Dim / 2], const uint32_t (&weights)[kUnit / 16][4],
                           int stage, bool add) const {
    const uint32_t v_tile = ring_memory + uniform(stage) * S::kUnitBytes;
    const uint64_t v = swizzled_tile(v_tile, kLoadRun * 128);
#pragma unroll
    for (int n = 0; n < kUnit / kLoadRun; ++n) {
      wgmma_values(values, weights[n], v + n * kLoadRun * Dim * 2 / 16, n > 0 || add);
    }
    wgmma_commit();
  }

  __device__ static void pack(const float (&weights)[kUnit / 2], uint32_t (&to)[kUnit / 16][4]) {
#pragma unroll
    for (int n = 0; n < kUnit / 16; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        to[n][i] = pack_bf16(weights[n * 8 + i * 2], weights[n * 8 + i * 2 + 1]);
      }
    }
  }

  __device__ void weigh(RowSums& sums, Scores<Dim>& scores, float (&keeps)[2], int unit,
                        const RowLimits& limits) const {
    if constexpr (Capped) cap_products<Dim>(scores, scoring);
    weigh_products<Dim>(sums, scores, keeps, unit * kUnit, limits, scoring.scale);
  }

  // The part of a split is complete.
  __device__ void end_split(const LongJob& job, int unit, Partial<Dim>& part,
                            Partial<Dim>& running) const {
    finish(part);
    if (job.folds()) {
      merge_into<Dim>(running, part);
    } else {
      leave(job, split_of_unit(unit), part);
    }
  }

  // Leaves a partial result of a cut tile at the place of a split.
  __device__ void leave(const LongJob& job, int split, const Partial<Dim>& part) const {
    for_each_row<Dim>(job.tile, [&](int i, int row, int head) {
      const int64_t index = place(row) + head * cut.splits + split - job.folded;
      if (threadIdx.x % 4 == 0) {
        *cut.space.state(index) = make_float2(part.highest[i], part.weights[i]);
      }
      float* to = cut.space.values(index);
      for_each_pair<Codes>(part.values, i, [&](int d, float a, float b) {
        *reinterpret_cast<float2*>(to + d) = make_float2(a, b);
      });
    });
  }

  __device__ int place(int row) const {
    return static_cast<int>(cut.space.long_begin) + row * args.num_heads * cut.splits;
  }

  __device__ void tell_places(const LongJob& job) const {
    for (int i = static_cast<int>(threadIdx.x); i < job.tile.num_tokens; i += Team::kReaders * 32) {
      const int row = job.tile.first_row + i;
      cut.space.rows()[row] = {place(row), cut.splits, job.folded, 0};
    }
  }

  __device__ void store(const LongJob& job, const Partial<Dim>& running) const {
    if (job.folded < 0) {
      if constexpr (Codes) {
        store_result_of_codes<Dim>(args, job.tile, running);
      } else {
        store_result<Dim>(args, job.tile, running);
      }
    } else if (job.part == 0) {
      leave(job, job.folded, running);
      if (job.tells) tell_places(job);
    }
  }

  // With the sums of the splits so far in registers.
  __device__ void attend(const LongJob& job, uint32_t q_tile) {
    const RowLimits limits = row_limits<Dim>(args, job.tile);
    Partial<Dim> running;
    Partial<Dim> part;
    Scores<Dim> scores;
    auto& products = reinterpret_cast<float(&)[kUnit / 2]>(scores);
    auto& values = reinterpret_cast<float(&)[Dim / 2]>(part.values);
    uint32_t weights[kUnit / 16][4];
    float keeps[2];
    const int last = job.last_unit;
    int unit = job.first_unit;
    bool adds = false;
    multiply_first(products, q_tile);
    weigh(part, scores, keeps, unit, limits);
    pack(products, weights);
    for (; unit < last; ++unit) {
      const int v_stage = next_stage();
      const int k_stage = next_stage();
      pin_registers(values);
      wgmma_fence();
      start_qk(products, q_tile, k_stage);
      start_pv(values, weights, v_stage, adds);
      wgmma_wait<1>();
      pin_registers(products);
      release(k_stage);
      const RowSums ended = part;
      const bool ends = ends_split(unit);
      if (ends) static_cast<RowSums&>(part) = RowSums{};
      weigh(part, scores, keeps, unit + 1, limits);
      const bool rescaled = __any_sync(0xffffffffu, rescales(keeps));
      // The wait stands behind a branch, or it would be scheduled before the weighing.
      if (ends) {
        wait_values(values, v_stage);
        const RowSums next = part;
        static_cast<RowSums&>(part) = ended;
        end_split(job, unit, part, running);
        static_cast<RowSums&>(part) = next;
      } else {
        wait_values(values, v_stage);
        if (rescaled) rescale_values<Dim>(part, keeps);
      }
      adds = !ends;
      pack(products, weights);
    }
    add_last(values, weights, adds);
    end_split(job, last, part, running);
    store(job, running);
  }

  // With these sums in shared memory. What is done to the values before those of a unit join them
  // waits until the next keys' products have begun.
  __device__ void attend_wide(const LongJob& job, Kept kept) {
    const RowLimits limits = row_limits<Dim>(args, job.tile);
    Partial<Dim> part;
    Scores<Dim> scores;
    auto& products = reinterpret_cast<float(&)[kUnit / 2]>(scores);
    auto& values = reinterpret_cast<float(&)[Dim / 2]>(part.values);
    uint32_t weights[kUnit / 16][4];
    float keeps[2];
    RowSums ended;
    bool ends = false;  // the split of the unit before
    bool rescaled = false;
    bool adds = false;
    const int last = job.last_unit;
    int unit = job.first_unit;
    multiply_first(products, queries);
    if (unit == last) release_queries();
    weigh(part, scores, keeps, unit, limits);
    pack(products, weights);
    const auto settle = [&] {
      if (ends) {
        const RowSums next = part;
        static_cast<RowSums&>(part) = ended;
        end_split(job, unit - 1, part, kept);
        static_cast<RowSums&>(part) = next;
      } else if (rescaled) {
        rescale_values<Dim>(part, keeps);
      }
      pin_registers(values);
      wgmma_fence();
    };
    int v_stage = next_stage();
    for (; unit < last; ++unit) {
      const int k_stage = next_stage();
      wgmma_fence();
      start_qk(products, queries, k_stage);
      settle();
      start_pv(values, weights, v_stage, adds);
      wgmma_wait<1>();
      pin_registers(products);
      release(k_stage);
      if (unit + 1 == last) release_queries();
      ended = part;
      ends = ends_split(unit);
      if (ends) static_cast<RowSums&>(part) = RowSums{};
      weigh(part, scores, keeps, unit + 1, limits);
      rescaled = __any_sync(0xffffffffu, rescales(keeps));
      const int v_next = next_stage();
      wait_behind_branch(values, v_stage, limits);
      v_stage = v_next;
      adds = !ends;
      pack(products, weights);
    }
    settle();
    start_pv(values, weights, v_stage, adds);
    wait_values(values, v_stage);
    finish(part);
    if (!job.folds()) return leave(job, split_of_unit(last), part);
    kept.join(part);
    store(job, part);
  }

  // The part of a split is complete, and others follow.
  __device__ void end_split(const LongJob& job, int unit, Partial<Dim>& part, Kept& kept) const {
    finish(part);
    if (!job.folds()) return leave(job, split_of_unit(unit), part);
    kept.join(part);
    kept.keep(part);
  }

  // Both ways do the same: the branch holds the wait behind the weighing.
  __device__ void wait_behind_branch(float (&values)[Dim / 2], int stage, const RowLimits& limits) {
    if (limits.group_last >= 0) {
      wait_values(values, stage);
    } else {
      wait_values(values, stage);
    }
  }

  __device__ void release_queries() const {
    __syncwarp();
    if (leads) arrive(barriers + static_cast<uint32_t>(offsetof(State, q_empty)));
  }

  __device__ void wait_values(float (&values)[Dim / 2], int stage) {
    wgmma_wait<0>();
    pin_registers(values);
    release(stage);
  }

  __device__ void multiply_first(float (&products)[kUnit / 2], uint32_t q_tile) {
    const int stage = next_stage();
    wgmma_fence();
    start_qk(products, q_tile, stage);
    wgmma_wait<0>();
    pin_registers(products);
    release(stage);
  }

  __device__ void add_last(float (&values)[Dim / 2], const uint32_t (&weights)[kUnit / 16][4],
                           bool adds) {
    const int stage = next_stage();
    pin_registers(values);
    wgmma_fence();
    start_pv(values, weights, stage, adds);
    wait_values(values, stage);
  }

  __device__ void run() {
    for (RingPlace<kLongPlaces> places;; places.advance()) {
      const auto q_full = static_cast<uint32_t>(offsetof(State, q_full));
      wait_barrier(barriers + q_full + places.place * 8, places.parity);
      const LongJob& job = state.jobs[places.place];
      if (job.tile.num_tokens == 0) return;
      if (Codes) scoring = scoring_of_codes(args, job.tile.first_row, job.tile.kv_head);
      if constexpr (Wide) {
        attend_wide(job, Kept{ring_memory + S::kSumsAt + threadIdx.x * 16});
      } else {
        attend(job, queries + uniform(places.place) * S::kQueryBytes);
      }
      const auto job_empty = static_cast<uint32_t>(offsetof(State, job_empty));
      arrive(barriers + job_empty + places.place * 8);
    }
  }
};

}  // namespace foretoken::cuda
