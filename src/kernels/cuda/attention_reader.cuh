#pragma once
#include "kernels/cuda/attention_rows.cuh"
#include "kernels/cuda/attention_team.cuh"
#include "kernels/cuda/wgmma.cuh"

// The warps of a team that multiply.
namespace foretoken::cuda {

// One of the warps that multiply.
template <int Dim, int BlockSize>
struct TeamReader {
  using Unit = UnitShape<Dim, BlockSize>;
  using Values = Partial<Unit::kPart>;
  const AttentionArgs& args;
  const PlanShape& shape;
  Scoring scoring;
  TeamMemory<Dim, BlockSize> memory;
  TeamState<Dim>& state;
  int team;
  int reader;
  RingPlace<kSlots> slot{};
  int turn = 0;

  __device__ uint8_t* wait_unit() const {
    wait_barrier(state.full + slot.place, slot.parity);
    return memory.slot(team, slot.place);
  }
  __device__ void release_unit() {
    __syncwarp();
    if (threadIdx.x == 0) arrive(state.empty + slot.place);
    slot.advance();
  }

  // The products of all rows with this reader's 16 positions.
  __device__ void multiply_qk(float (&products)[2][4], uint32_t queries, uint32_t keys) const {
    const int lane = static_cast<int>(threadIdx.x);
    const int row = lane / 16 * 8 + lane % 8;
    const uint32_t q_at = queries + lane % 16 * Unit::kQueryStride + lane / 16 * 16;
    const uint32_t k_at =
        keys + Unit::group_offset(reader) + row * 128 + Unit::chunk_offset(row, lane / 8 % 2);
#pragma unroll
    for (int d = 0; d < Dim / 16; ++d) {
      uint32_t a[4];
      uint32_t b[4];
      load_matrices(a, q_at + d * 32);
      load_matrices(b, Unit::step_on(k_at, d));
      mma_bf16(products[0], a[0], a[1], a[2], a[3], b[0], b[1]);
      mma_bf16(products[1], a[0], a[1], a[2], a[3], b[2], b[3]);
    }
  }

  // Brings the products of all readers together.
  template <int Halves>
  __device__ void share(Scores<Dim>& scores, const float (&products)[2][4]) {
    auto& places = state.scores[turn];
    turn ^= 1;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int i = 0; i < Halves; ++i) {
        places[reader * 2 + n][i][threadIdx.x] =
            make_float2(products[n][i * 2], products[n][i * 2 + 1]);
      }
    }
    asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(kReaders * 32) : "memory");
#pragma unroll
    for (int n = 0; n < kUnit / 8; ++n) {
#pragma unroll
      for (int i = 0; i < Halves; ++i) {
        const float2 pair = places[n][i][threadIdx.x];
        scores[n][i * 2] = pair.x;
        scores[n][i * 2 + 1] = pair.y;
      }
    }
  }

  // Positions that no row sees have weight 0, but what lies there may be no number. Each reader
  // clears what it reads.
  __device__ void clear_unseen(uint8_t* values, int begin, const QueryTile& tile) const {
    if (begin >= tile.first_kv && begin + kUnit - 1 <= tile.last_kv) return;
    constexpr int kChunks = Unit::kPart / 8;
    for (int i = static_cast<int>(threadIdx.x); i < kUnit * kChunks; i += 32) {
      const int row = i / kChunks;
      if (begin + row >= tile.first_kv && begin + row <= tile.last_kv) continue;
      *reinterpret_cast<uint4*>(values + Unit::group_offset(row / 16) + row % 16 * 128 +
                                Unit::chunk_offset(row, reader * kChunks + i % kChunks)) = uint4{};
    }
    fence_async_proxy();
    __syncwarp();
  }

  template <int Halves>
  __device__ void multiply_pv(Values& part, const Scores<Dim>& weights, uint32_t values) const {
    const int lane = static_cast<int>(threadIdx.x);
    const uint32_t at =
        values + lane % 16 * 128 + Unit::chunk_offset(lane, reader * (Unit::kPart / 8) + lane / 16);
#pragma unroll
    for (int n = 0; n < kUnit / 16; ++n) {
      const float(&low)[4] = weights[n * 2];
      const float(&high)[4] = weights[n * 2 + 1];
      const uint32_t a0 = pack_bf16(low[0], low[1]);
      const uint32_t a1 = Halves == 2 ? pack_bf16(low[2], low[3]) : 0;
      const uint32_t a2 = pack_bf16(high[0], high[1]);
      const uint32_t a3 = Halves == 2 ? pack_bf16(high[2], high[3]) : 0;
#pragma unroll
      for (int d = 0; d < Unit::kPart / 16; ++d) {
        uint32_t b[4];
        load_matrices_transposed(b, (at ^ d * 32) + Unit::group_offset(n));
        mma_bf16(part.values[d * 2], a0, a1, a2, a3, b[0], b[1]);
        mma_bf16(part.values[d * 2 + 1], a0, a1, a2, a3, b[2], b[3]);
      }
    }
  }

  template <int Halves>
  __device__ void add_unit(Values& part, int begin, const AttentionJob& job,
                           const RowLimits& limits, uint32_t queries) {
    float products[2][4] = {};
    multiply_qk(products, queries, shared_address(wait_unit()));
    release_unit();
    if (scoring.capped) {
#pragma unroll
      for (int i = 0; i < 8; ++i) products[i / 4][i % 4] = capped(scoring, products[i / 4][i % 4]);
    }
    Scores<Dim> scores;
    share<Halves>(scores, products);
    apply_softmax<Unit::kPart, Halves>(part, scores, begin, limits, scoring.scale);
    uint8_t* values = wait_unit();
    clear_unseen(values, begin, job.tile);
    multiply_pv<Halves>(part, scores, shared_address(values));
    release_unit();
  }

  template <int Halves>
  __device__ void attend(const AttentionJob& job, uint32_t queries) {
    const RowLimits limits = row_limits<Unit::kPart>(args, job.tile);
    Values sum;  // of the splits since the last that was left
    Values part;
    for (int unit = job.first_unit; unit <= job.last_unit;) {
      const int end = min(next_split(unit + 1), job.last_unit + 1);
      for (; unit < end; ++unit) add_unit<Halves>(part, unit * kUnit, job, limits, queries);
      finish(part);
      merge_into<Unit::kPart>(sum, part);
      part = Values{};
      if (job.folds && end <= job.last_unit) continue;
      if (job.partials < 0) return store(job.tile, sum);
      store(job, job.folds ? job.folded : split_of_unit(end - 1), sum);
      sum = Values{};
    }
  }

  // This lane's first dimension.
  __device__ int dimension() const {
    return reader * Unit::kPart + static_cast<int>(threadIdx.x) % 4 * 2;
  }

  __device__ void store(const AttentionJob& job, int split, const Values& part) const {
    for_each_row<Unit::kPart>(job.tile, [&](int i, int row, int head) {
      const int64_t index =
          job.partials +
          int64_t{(row - job.tile.first_row) * args.num_heads + head} * job.num_splits + split -
          job.folded;
      if (threadIdx.x % 4 == 0 && reader == 0) {
        *shape.space.state(index) = make_float2(part.highest[i], part.weights[i]);
      }
      float* to = shape.space.values(index) + dimension();
#pragma unroll
      for (int d = 0; d < Unit::kPart / 8; ++d) {
        *reinterpret_cast<float2*>(to + d * 8) =
            make_float2(part.values[d][i * 2], part.values[d][i * 2 + 1]);
      }
    });
  }

  __device__ void store(const QueryTile& tile, const Values& all) const {
    for_each_row<Unit::kPart>(tile, [&](int i, int row, int head) {
      auto* to = static_cast<__nv_bfloat16*>(args.out) +
                 (int64_t{row} * args.num_heads + head) * Dim + dimension();
#pragma unroll
      for (int d = 0; d < Unit::kPart / 8; ++d) {
        *reinterpret_cast<uint32_t*>(to + d * 8) =
            pack_bf16(normalized(all.values[d][i * 2], all.weights[i]),
                      normalized(all.values[d][i * 2 + 1], all.weights[i]));
      }
    });
  }

  __device__ void tell_partials(const AttentionJob& job) const {
    const int row = static_cast<int>(threadIdx.x);
    if (shape.space.capacity == 0 || reader > 0 || row >= job.tile.num_tokens) return;
    const int first = job.partials + row * args.num_heads * job.num_splits;
    shape.space.rows()[job.tile.first_row + row] = {job.partials < 0 ? -1 : first, job.num_splits,
                                                    job.folded, 0};
  }

  __device__ void run() {
    for (RingPlace<TeamState<Dim>::kPlaces> place;; place.advance()) {
      wait_barrier(state.job_full + place.place, place.parity);
      const AttentionJob& job = state.jobs[place.place];
      if (job.tile.num_tokens == 0) return;
      if (job.leads) tell_partials(job);
      const uint32_t queries = shared_address(memory.queries(team, place.place));
      job.tile.num_tokens* job.tile.heads <= 8 ? attend<1>(job, queries) : attend<2>(job, queries);
      __syncwarp();
      if (threadIdx.x == 0) arrive(state.job_empty + place.place);
    }
  }
};

}  // namespace foretoken::cuda
