#pragma once
#include "kernels/attention/cuda/attention_latent.cuh"
#include "kernels/attention/cuda/attention_latent_plan.cuh"
#include "kernels/attention/cuda/attention_wgmma.cuh"

// The warpgroups that sum up values.
namespace foretoken::cuda {

// An 8 x 8 matrix of 16-bit elements, transposed among the lanes of a warp.
__device__ inline uint32_t transpose_matrix(uint32_t word) {
  uint32_t turned;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(word));
  return turned;
}

// One of two warpgroups. Thread 32 w + 4 g + q has, of each matrix of 64 elements, those with
// numbers 16 w + g and + 8, and of each 8 queries the two from 2 q on.
template <int Ranks>
struct LatentReader {
  using S = LatentShape<Ranks>;
  static constexpr int kMatrices = S::kMatrices;
  template <int N>
  using Values = float[kMatrices][N / 2];
  const AttentionArgs& args;
  const LatentSpace& space;
  LatentMemory<Ranks> memory;
  LatentState<Ranks>& state;
  int rank;
  int group;   // 0 or 1
  int thread;  // of the warpgroup
  RingPlace<S::kStages> keys{};
  RingPlace<2> weights{};

  __device__ int lane() const { return thread % 32; }
  __device__ int first_query(int j) const { return j * 8 + lane() % 4 * 2; }

  template <int N>
  __device__ void rescale(Values<N>& part, const LatentNote<S::kQueries>& note) const {
    float2 keeps[N / 8];
    bool changes = false;
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
      keeps[j] = *reinterpret_cast<const float2*>(note.keep + first_query(j));
      changes = changes || keeps[j].x != 1.0f || keeps[j].y != 1.0f;
    }
    if (!__any_sync(0xffffffffu, changes)) return;
#pragma unroll
    for (int m = 0; m < kMatrices; ++m) {
#pragma unroll
      for (int j = 0; j < N / 8; ++j) {
        part[m][j * 4] = __fmul_rn(part[m][j * 4], keeps[j].x);
        part[m][j * 4 + 1] = __fmul_rn(part[m][j * 4 + 1], keeps[j].y);
        part[m][j * 4 + 2] = __fmul_rn(part[m][j * 4 + 2], keeps[j].x);
        part[m][j * 4 + 3] = __fmul_rn(part[m][j * 4 + 3], keeps[j].y);
      }
    }
  }

  // Adds the values of a unit; without `add` the sums start at zero.
  template <int N>
  __device__ void multiply(Values<N>& part, bool add) const {
    const uint32_t stage =
        shared_address(memory.stage(keys.place)) + group * kMatrices * kUnitChunk;
    const uint64_t a = swizzled_tile(__shfl_sync(0xffffffffu, stage, 0), 0);
    const uint32_t from = shared_address(memory.weights(weights.place));
    const uint64_t b = swizzled_operand(__shfl_sync(0xffffffffu, from, 0), 1024);
#pragma unroll
    for (int m = 0; m < kMatrices; ++m) pin_registers(part[m]);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < kUnit / 16; ++k) {
#pragma unroll
      for (int m = 0; m < kMatrices; ++m) {
        wgmma_columns<N>(part[m], a + (m * kUnitChunk + k * 16 * kChunkBytes) / 16, b + k * 2,
                         add || k > 0);
      }
    }
    wgmma_commit();
    wgmma_wait<0>();
#pragma unroll
    for (int m = 0; m < kMatrices; ++m) pin_registers(part[m]);
  }

  template <int N>
  __device__ void merge_split(const Values<N>& running, Values<N>& part,
                              const LatentNote<S::kQueries>& note) const {
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
      const float2 low = note.merge[first_query(j)];
      const float2 high = note.merge[first_query(j) + 1];
#pragma unroll
      for (int m = 0; m < kMatrices; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float2 scales = i % 2 == 0 ? low : high;
          float& value = part[m][j * 4 + i];
          value = merge(running[m][j * 4 + i], value, {scales.x, scales.y, 0});
        }
      }
    }
  }

  // This thread's values of a partial result, of a matrix and 8 queries each, kThreads apart.
  static constexpr int kThreads = 128;
  template <int N>
  __device__ float4* place_of(const LatentJob& job, int split) const {
    const int64_t block = job.place + split * (N / LatentSpace::kQueries);
    return reinterpret_cast<float4*>(space.values(block)) +
           (rank * 2 + group) * (kMatrices * (N / 8) * kThreads) + thread;
  }

  template <int N>
  __device__ void leave(const LatentJob& job, int split, const Values<N>& values) const {
    float4* to = place_of<N>(job, split);
#pragma unroll
    for (int m = 0; m < kMatrices; ++m) {
      const float(&c)[N / 2] = values[m];
#pragma unroll
      for (int j = 0; j < N / 8; ++j) {
        to[(m * (N / 8) + j) * kThreads] = {c[j * 4], c[j * 4 + 1], c[j * 4 + 2], c[j * 4 + 3]};
      }
    }
  }

  // Stores the sums of 8 queries, from query 8 j on. c: those of a matrix.
  __device__ void store(const LatentJob& job, int j, int matrix, float4 c, float2 inverse) const {
    const uint32_t low =
        transpose_matrix(pack_bf16(__fmul_rn(c.x, inverse.x), __fmul_rn(c.y, inverse.y)));
    const uint32_t high =
        transpose_matrix(pack_bf16(__fmul_rn(c.z, inverse.x), __fmul_rn(c.w, inverse.y)));
    const int query = j * 8 + lane() / 4;
    if (query >= job.queries()) return;
    const int64_t row = int64_t{job.first_row} * args.num_heads + job.first_head + query;
    const int d =
        ((rank * 2 + group) * kMatrices + matrix) * 64 + thread / 32 * 16 + lane() % 4 * 2;
    auto* to = static_cast<__nv_bfloat16*>(args.out) + row * kLatentValues + d;
    *reinterpret_cast<uint32_t*>(to) = low;
    *reinterpret_cast<uint32_t*>(to + 8) = high;
  }

  template <int N>
  __device__ void store_all(const LatentJob& job, const Values<N>& running,
                            const LatentNote<S::kQueries>& note) const {
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
      const float2 inverse = *reinterpret_cast<const float2*>(note.inverse + first_query(j));
#pragma unroll
      for (int m = 0; m < kMatrices; ++m) {
        const float(&c)[N / 2] = running[m];
        store(job, j, m, {c[j * 4], c[j * 4 + 1], c[j * 4 + 2], c[j * 4 + 3]}, inverse);
      }
    }
  }

  // Counts the job's partial results as left and tells whether they were the tile's last for this
  // rank; then all are visible.
  __device__ bool count_left(const LatentJob& job, int own) const {
    __threadfence();
    sync_latent_workers();
    if (group == 0 && thread == 0) {
      uint32_t* left = args.sync + int64_t{job.first_row} * args.num_heads + job.first_head + rank;
      const auto before = static_cast<int>(atomicAdd(left, static_cast<uint32_t>(own)));
      state.joins = before + own == job.splits;
      if (state.joins) *left = 0;
      __threadfence();
    }
    sync_latent_workers();
    return state.joins;
  }

  // What this thread has of 8 queries' sums over splits.
  struct Eight {
    float4 values[kMatrices];
    float4 sums;  // {highest, sum of weights} of two queries

    __device__ void add(const Eight& other) {
      const MergeScales low = merge_scales(sums.x, other.sums.x);
      const MergeScales high = merge_scales(sums.z, other.sums.z);
      sums = {low.highest, merge(sums.y, other.sums.y, low), high.highest,
              merge(sums.w, other.sums.w, high)};
#pragma unroll
      for (int m = 0; m < kMatrices; ++m) {
        const float4 more = other.values[m];
        float4& all = values[m];
        all = {merge(all.x, more.x, low), merge(all.y, more.y, high), merge(all.z, more.z, low),
               merge(all.w, more.w, high)};
      }
    }
  };

  template <int N>
  __device__ Eight load_eight(const LatentJob& job, int split, int j) const {
    Eight eight;
    const int64_t block = job.place + split * (N / LatentSpace::kQueries);
    eight.sums = __ldcg(
        reinterpret_cast<const float4*>(space.states(block, Ranks) + rank * N + first_query(j)));
    const float4* from = place_of<N>(job, split) + j * kThreads;
#pragma unroll
    for (int m = 0; m < kMatrices; ++m) eight.values[m] = __ldcg(from + m * (N / 8) * kThreads);
    return eight;
  }

  // Merges 8 queries' partial results, in order; some are on their way at once.
  template <int N>
  __device__ void join_eight(const LatentJob& job, int j) const {
    constexpr int kAtOnce = kMatrices == 1 ? 10 : 4;
    Eight all;
    for (int begin = 0; begin < job.splits; begin += kAtOnce) {
      const int last = job.splits - 1 - begin;
      Eight more[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) more[i] = load_eight<N>(job, begin + min(i, last), j);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (i > last) break;
        if (begin + i == 0) {
          all = more[0];
        } else {
          all.add(more[i]);
        }
      }
    }
    const int query = first_query(j);
    float2 inverse{};
    if (query < job.queries()) {
      inverse.x =
          inverse_of(with_sink(args, job.first_head + query % job.heads, all.sums.x, all.sums.y));
    }
    if (query + 1 < job.queries()) {
      inverse.y = inverse_of(
          with_sink(args, job.first_head + (query + 1) % job.heads, all.sums.z, all.sums.w));
    }
#pragma unroll
    for (int m = 0; m < kMatrices; ++m) store(job, j, m, all.values[m], inverse);
  }

  template <int N>
  __device__ void attend(const LatentJob& job) {
    Values<N> part;
    Values<N> running;
    bool fresh = true;
    for (int unit = job.first_unit; unit <= job.last_unit; ++unit) {
      wait_barrier(state.weights_full + weights.place, weights.parity);
      const LatentNote<S::kQueries>& note = state.notes[weights.place];
      if (!fresh) rescale<N>(part, note);
      multiply<N>(part, !fresh);
      __syncwarp();
      if (lane() == 0) arrive(state.empty + keys.place);
      keys.advance();
      fresh = unit == job.last_unit || LatentSplits::ends(unit);
      if (fresh) end_split<N>(job, unit, running, part, note);
      __syncwarp();
      if (lane() == 0) arrive(state.weights_empty + weights.place);
      weights.advance();
    }
  }

  template <int N>
  __device__ void end_split(const LatentJob& job, int unit, Values<N>& running, Values<N>& part,
                            const LatentNote<S::kQueries>& note) const {
    const int number = LatentSplits::of(unit) - LatentSplits::of(job.first_unit);
    if (!job.folds()) return leave<N>(job, job.split + number, part);
    if (number > 0) merge_split<N>(running, part, note);
    if (unit == job.last_unit) {
      if (job.place >= 0) return leave<N>(job, 0, part);
      return store_all<N>(job, part, note);
    }
#pragma unroll
    for (int m = 0; m < kMatrices; ++m) {
#pragma unroll
      for (int i = 0; i < N / 2; ++i) running[m][i] = part[m][i];
    }
  }

  template <int N>
  __device__ void join(const LatentJob& job) const {
    const int own =
        job.split == 0 ? 1 : LatentSplits::of(job.last_unit) - LatentSplits::of(job.first_unit) + 1;
    if (!count_left(job, own)) return;
#pragma unroll 1
    for (int j = 0; j < N / 8; ++j) join_eight<N>(job, j);
  }

  __device__ void run(const LatentPlan& plan) {
    for (int i = 0; i < plan.num_jobs; ++i) {
      const LatentJob job = plan.jobs[i];
      for_columns(job.queries(), [&](auto n) {
        attend<n>(job);
        if (job.place >= 0) join<n>(job);
      });
    }
  }
};

}  // namespace foretoken::cuda
