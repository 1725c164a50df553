#pragma once
#include "kernels/attention/cuda/attention_latent.cuh"
#include "kernels/attention/cuda/attention_latent_plan.cuh"

// The warpgroup that scores the keys and makes weights of the scores.
namespace foretoken::cuda {

// Address of the same place in the shared memory of another block of the cluster.
__device__ inline uint32_t address_at(uint32_t address, int rank) {
  uint32_t remote;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
  return remote;
}

// Stores to the shared memory of a block of the cluster and counts the 16 bytes at its barrier.
__device__ inline void store_at(uint32_t remote, float4 value, uint32_t remote_barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(remote),
      "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(remote_barrier)
      : "memory");
}

// Four 8 x 8 matrices of 16-bit elements, stored transposed; lane i has the address of row i % 8 of
// matrix i / 8.
__device__ inline void store_matrices_transposed(uint32_t address, uint32_t a, uint32_t b,
                                                 uint32_t c, uint32_t d) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
      "r"(a), "r"(b), "r"(c), "r"(d)
      : "memory");
}

// Thread 32 w + 4 g + q has positions 16 w + g and + 8 of a unit, and of each 8 queries the two
// from 2 q on. The scores of a key are the sum of four chains, of 128 elements each and the last of
// 192, whatever the number of blocks that share them. Ahead: scores the next unit before it weighs
// one. Gathered: threads have written the keys, not the copy engine.
template <int Ranks, bool Ahead, bool Gathered>
struct LatentScorer {
  using S = LatentShape<Ranks>;
  const AttentionArgs& args;
  const LatentSpace& space;
  Scoring scoring;
  LatentMemory<Ranks> memory;
  LatentState<Ranks>& state;
  int rank;
  int thread;                       // of the warpgroup
  RingPlace<S::kStages> keys{};     // of the next unit to score
  RingPlace<S::kStages> weighed{};  // of the next unit to weigh
  RingPlace<S::kSlots> sent{};
  RingPlace<S::kSlots> received{};
  RingPlace<2> weights{};
  LatentQueryPlaces<Ranks> queries{};
  float running_highest = 0;  // of query `thread`, over the splits that are merged
  float running_weights = 0;

  __device__ int lane() const { return thread % 32; }
  __device__ int warp() const { return thread / 32; }

  template <int N>
  __device__ static void add_step(float (&c)[N / 2], uint32_t keys, uint32_t queries, int chunk,
                                  int k, bool add) {
    wgmma<N>(c, swizzled_operand(keys + chunk * kUnitChunk, 1024) + k * 2,
             swizzled_operand(queries + chunk * N * kChunkBytes, 1024) + k * 2, add);
  }
  // One chain along the elements of two chunks.
  template <int N>
  __device__ static void add_chain(float (&c)[N / 2], uint32_t keys, uint32_t queries) {
#pragma unroll
    for (int i = 0; i < 8; ++i) add_step<N>(c, keys, queries, i / 4, i % 4, i > 0);
  }
  // Two chains side by side, of two chunks each.
  template <int N>
  __device__ static void add_chains(float (&c)[N / 2], float (&d)[N / 2], uint32_t keys,
                                    uint32_t queries) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      add_step<N>(c, keys, queries, i / 4, i % 4, i > 0);
      add_step<N>(d, keys, queries, 2 + i / 4, i % 4, i > 0);
    }
  }
  // The elements that are no values.
  template <int N>
  __device__ static void add_rest(float (&c)[N / 2], uint32_t keys, uint32_t queries) {
#pragma unroll
    for (int k = 0; k < 4; ++k) add_step<N>(c, keys, queries, S::kValueChunks, k, true);
  }

  // This rank's part of the scores of the next unit.
  template <int N>
  __device__ void multiply(float (&c)[N / 2]) {
    wait_barrier(state.full + keys.place, keys.parity);
    // For the readers of values too, who wait for this warpgroup.
    if constexpr (Gathered) fence_async_proxy();
    const uint32_t from = __shfl_sync(0xffffffffu, shared_address(memory.stage(keys.place)), 0);
    const uint32_t q = __shfl_sync(
        0xffffffffu,
        shared_address(memory.queries() + LatentQueryPlaces<Ranks>::offset(queries.first(N))), 0);
    const bool is_last = __shfl_sync(0xffffffffu, rank, 0) == Ranks - 1;
    keys.advance();
    wgmma_fence();
    if constexpr (Ranks == 2) {
      float d[N / 2];
      add_chains<N>(c, d, from, q);
      if (is_last) add_rest<N>(d, from, q);
      wgmma_commit();
      wgmma_wait<0>();
      pin_registers(c);
      pin_registers(d);
#pragma unroll
      for (int i = 0; i < N / 2; ++i) c[i] = __fadd_rn(c[i], d[i]);
    } else {
      add_chain<N>(c, from, q);
      if (is_last) add_rest<N>(c, from, q);
      wgmma_commit();
      wgmma_wait<0>();
      pin_registers(c);
    }
  }

  // Sends them to the other ranks; slots are in the order of those.
  template <int N>
  __device__ void send(const float (&c)[N / 2]) {
    wait_barrier(state.scores_empty + sent.place, sent.parity ^ 1);
    if (thread == 0) {
      arrive_expecting(state.scores_full + sent.place, (Ranks - 1) * N * kUnit * 4);
    }
    const uint32_t slot = shared_address(memory.slot(sent.place)) + thread * 16;
    const uint32_t barrier = shared_address(state.scores_full + sent.place);
    sent.advance();
#pragma unroll
    for (int i = 1; i < Ranks; ++i) {
      const int to = rank ^ i;
      const uint32_t at = address_at(slot + (rank < to ? rank : rank - 1) * (N * kUnit * 4), to);
      const uint32_t remote_barrier = address_at(barrier, to);
#pragma unroll
      for (int j = 0; j < N / 8; ++j) {
        store_at(at + j * (128 * 16), {c[j * 4], c[j * 4 + 1], c[j * 4 + 2], c[j * 4 + 3]},
                 remote_barrier);
      }
    }
  }

  __device__ float4 received_from(int from, int n, int j) const {
    const int slot = from < rank ? from : from - 1;
    return *reinterpret_cast<const float4*>(memory.slot(received.place) + slot * (n * kUnit * 4) +
                                            j * (128 * 16) + thread * 16);
  }

  static __device__ float4 sum(float4 a, float4 b) {
    return {__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z), __fadd_rn(a.w, b.w)};
  }

  // Adds what the others have sent: (chain 0 + chain 1) + (chain 2 + chain 3).
  template <int N>
  __device__ void receive(float (&c)[N / 2]) {
    wait_barrier(state.scores_full + received.place, received.parity);
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
      float4 all{c[j * 4], c[j * 4 + 1], c[j * 4 + 2], c[j * 4 + 3]};
      all = sum(all, received_from(rank ^ 1, N, j));
      if constexpr (Ranks == 4) {
        const int other = (rank & 2) ^ 2;
        all = sum(all, sum(received_from(other, N, j), received_from(other + 1, N, j)));
      }
      c[j * 4] = all.x;
      c[j * 4 + 1] = all.y;
      c[j * 4 + 2] = all.z;
      c[j * 4 + 3] = all.w;
    }
  }

  // After a barrier behind `receive`.
  __device__ void release_slot() {
    if (thread == 0) {
#pragma unroll
      for (int i = 1; i < Ranks; ++i) arrive_at(state.scores_empty + received.place, rank ^ i);
    }
    received.advance();
  }

  // Whether all tokens see all positions of a unit.
  __device__ bool see_all(const LatentJob& job, int begin) const {
    return begin + kUnit - 1 <= job.position && begin >= first_visible(args, job.last_kv());
  }

  template <int N>
  __device__ void scale_and_mask(float (&c)[N / 2], const LatentJob& job, int begin) const {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) c[i] = __fmul_rn(c[i], scoring.scale);
    if (see_all(job, begin)) return;
    const int position = begin + warp() * 16 + lane() / 4;
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int token = (j * 8 + lane() % 4 * 2 + i) / job.heads;
        const int last = token < job.tokens ? job.position + token : -1;
        const int first = first_visible(args, max(last, 0));
        if (position < first || position > last) c[j * 4 + i] = -INFINITY;
        if (position + 8 < first || position + 8 > last) c[j * 4 + 2 + i] = -INFINITY;
      }
    }
  }

  // Leaves the highest scores of the warp's positions.
  template <int N>
  __device__ void find_tops(const float (&c)[N / 2], float (*tops)[4]) const {
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float top = fmaxf(c[j * 4 + i], c[j * 4 + 2 + i]);
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 4));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 8));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 16));
        if (lane() < 4) tops[j * 8 + lane() * 2 + i][warp()] = top;
      }
    }
  }

  // Positions that no row sees have weight 0, but what lies there may be no number.
  __device__ void clear_unseen(const LatentJob& job, int begin, char* stage) const {
    const int first = first_visible(args, job.position);
    if (begin >= first && begin + kUnit - 1 <= job.last_kv()) return;
    for (int i = thread; i < kUnit * S::kValueChunks * 8; i += 128) {
      const int row = i / 8 % kUnit;
      if (begin + row >= first && begin + row <= job.last_kv()) continue;
      *reinterpret_cast<uint4*>(stage + i * 16) = uint4{};
    }
  }

  // Turns scores into weights relative to the new highest score of the split; tells the factors of
  // what was summed before.
  template <int N>
  __device__ void exponentiate(float (&c)[N / 2], float (&sums)[N / 4], bool fresh, int turn,
                               LatentNote<S::kQueries>& note) {
    const float* before = state.highest[turn ^ 1];
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int query = j * 8 + lane() % 4 * 2 + i;
        const float4 tops = *reinterpret_cast<const float4*>(state.tops[turn][query]);
        const float old = fresh ? -INFINITY : before[query];
        const float highest = fmaxf(fmaxf(fmaxf(tops.x, tops.y), fmaxf(tops.z, tops.w)), old);
        const float base = highest == -INFINITY ? 0.0f : highest;
        const float keep = exp2_approx(__fsub_rn(old, base));
        if (thread < 4) {
          state.highest[turn][query] = highest;
          note.keep[query] = keep;
        }
        float& low = c[j * 4 + i];
        float& high = c[j * 4 + 2 + i];
        low = exp2_approx(__fsub_rn(low, base));
        high = exp2_approx(__fsub_rn(high, base));
        sums[j * 2 + i] = fmaf(sums[j * 2 + i], keep, __fadd_rn(low, high));
      }
    }
  }

  template <int N>
  __device__ void store_weights(const float (&c)[N / 2], char* to) const {
    const int half = lane() / 8 % 2;
    const int row = lane() / 16 * 8 + lane() % 8;
    const uint32_t at =
        shared_address(to) + row * kChunkBytes + ((warp() * 2 + half) ^ lane() % 8) * 16;
#pragma unroll
    for (int j = 0; j < N / 8; j += 2) {
      store_matrices_transposed(at + j * 8 * kChunkBytes, pack_bf16(c[j * 4], c[j * 4 + 1]),
                                pack_bf16(c[j * 4 + 2], c[j * 4 + 3]),
                                pack_bf16(c[j * 4 + 4], c[j * 4 + 5]),
                                pack_bf16(c[j * 4 + 6], c[j * 4 + 7]));
    }
  }

  // The sum of a query's weights in the split, in the thread with its number.
  template <int N>
  __device__ float sum_of_split(const float (&sums)[N / 4]) {
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float sum = sums[j * 2 + i];
        sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, 4));
        sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, 8));
        sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, 16));
        if (lane() < 4) state.sums[j * 8 + lane() * 2 + i][warp()] = sum;
      }
    }
    sync_latent_scorers();
    if (thread >= N) return 0;
    const float4 parts = *reinterpret_cast<const float4*>(state.sums[thread]);
    return __fadd_rn(__fadd_rn(parts.x, parts.y), __fadd_rn(parts.z, parts.w));
  }

  template <int N>
  __device__ float2* state_of(const LatentJob& job, int split) const {
    return space.states(job.place + split * (N / LatentSpace::kQueries), Ranks) + rank * N + thread;
  }

  template <int N>
  __device__ void end_split(const LatentJob& job, int unit, float weights, int turn,
                            LatentNote<S::kQueries>& note) {
    if (thread >= N) return;
    const float highest = state.highest[turn][thread];
    if (!job.folds()) {
      const int split = job.split + LatentSplits::of(unit) - LatentSplits::of(job.first_unit);
      *state_of<N>(job, split) = {highest, weights};
      return;
    }
    if (LatentSplits::of(unit) == LatentSplits::of(job.first_unit)) {
      running_highest = highest;
      running_weights = weights;
    } else {
      const MergeScales scales = merge_scales(running_highest, highest);
      running_highest = scales.highest;
      running_weights = merge(running_weights, weights, scales);
      note.merge[thread] = {scales.running, scales.partial};
    }
    if (unit < job.last_unit) return;
    if (job.place >= 0) *state_of<N>(job, 0) = {running_highest, running_weights};
    if (job.place >= 0 || thread >= job.queries()) return;
    const int head = job.first_head + thread % job.heads;
    note.inverse[thread] = inverse_of(with_sink(args, head, running_highest, running_weights));
  }

  template <int N>
  __device__ void weigh(float (&c)[N / 2], float (&sums)[N / 4], const LatentJob& job, int unit) {
    const int begin = unit * kUnit;
    const int turn = unit % 2;
    const bool fresh = unit == job.first_unit || LatentSplits::ends(unit - 1);
    receive<N>(c);
    scale_and_mask<N>(c, job, begin);
    find_tops<N>(c, state.tops[turn]);
    sync_latent_scorers();
    release_slot();
    clear_unseen(job, begin, memory.stage(weighed.place));
    weighed.advance();
    wait_barrier(state.weights_empty + weights.place, weights.parity ^ 1);
    LatentNote<S::kQueries>& note = state.notes[weights.place];
    if (fresh) {
#pragma unroll
      for (int i = 0; i < N / 4; ++i) sums[i] = 0;
    }
    exponentiate<N>(c, sums, fresh, turn, note);
    store_weights<N>(c, memory.weights(weights.place));
    if (unit == job.last_unit || LatentSplits::ends(unit)) {
      end_split<N>(job, unit, sum_of_split<N>(sums), turn, note);
    }
    fence_async_proxy();
    __syncwarp();
    if (lane() == 0) arrive(state.weights_full + weights.place);
    weights.advance();
  }

  template <int N>
  __device__ void attend(const LatentJob& job) {
    float own[N / 2];
    float next[N / 2];
    float sums[N / 4];
    const int first = queries.first(N);
    const int last = queries.last(N);
    wait_barrier(state.q_full + first, queries.parity(first));
    if (last != first) wait_barrier(state.q_full + last, queries.parity(last));
    const auto score = [&](float(&c)[N / 2], int unit) {
      multiply<N>(c);
      if (unit == job.last_unit) {
        __syncwarp();
        if (lane() == 0) arrive(state.q_empty + first);
        if (lane() == 0 && last != first) arrive(state.q_empty + last);
        queries.advance(N);
      }
      send<N>(c);
    };
    score(own, job.first_unit);
    for (int unit = job.first_unit; unit <= job.last_unit; ++unit) {
      if constexpr (Ahead) {
        if (unit < job.last_unit) score(next, unit + 1);
        weigh<N>(own, sums, job, unit);
#pragma unroll
        for (int i = 0; i < N / 2; ++i) own[i] = next[i];
      } else {
        weigh<N>(own, sums, job, unit);
        if (unit < job.last_unit) score(own, unit + 1);
      }
    }
  }

  __device__ void run(const LatentPlan& plan) {
    for (int i = 0; i < plan.num_jobs; ++i) {
      const LatentJob job = plan.jobs[i];
      for_columns(job.queries(), [&](auto n) { attend<n>(job); });
      if (job.place < 0) continue;
      __threadfence();
      sync_latent_workers();
      sync_latent_workers();
    }
  }
};

}  // namespace foretoken::cuda
