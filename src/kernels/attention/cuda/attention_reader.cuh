#pragma once
#include "kernels/attention/cuda/attention_codes.cuh"
#include "kernels/attention/cuda/attention_fold.cuh"
#include "kernels/attention/cuda/attention_rows.cuh"
#include "kernels/attention/cuda/attention_team.cuh"
#include "kernels/cuda/wgmma.cuh"

// The warps of a team that multiply.
namespace foretoken::cuda {

// One of the warps that multiply.
template <int Dim, int BlockSize, bool Codes>
struct TeamReader {
  using Unit = UnitShape<Dim, BlockSize, Codes>;
  using Values = Partial<Unit::kPart>;
  const AttentionArgs& args;
  const PlanShape& shape;
  Scoring scoring;
  TeamMemory<Dim, BlockSize, Codes> memory;
  TeamState<Codes>& state;
  int team;
  int reader;
  RingPlace<TeamCounts<Codes>::kSlots> slot{};
  uint32_t zero = unknown_zero();
  uint32_t queries[Dim / 16][4] = {};  // of the job, 16 dimensions each, in the layout of products

  __device__ uint8_t* wait_unit() const {
    wait_barrier(state.full + slot.place, slot.parity);
    return memory.slot(team, slot.place);
  }
  // read: see arrive_after_reads.
  __device__ void release_unit(uint32_t read) {
    __syncwarp();
    if (threadIdx.x == 0) arrive_after_reads(state.empty + slot.place, read, zero);
    slot.advance();
  }

  __device__ void load_queries(const uint8_t* from) {
    const int lane = static_cast<int>(threadIdx.x);
    if constexpr (Codes) {
      const uint8_t* row = from + lane / 4 * Unit::kQueryStride + lane % 4 * 8;
#pragma unroll
      for (int d = 0; d < Dim / 16; ++d) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const auto four =
              *reinterpret_cast<const uint2*>(row + i * 8 * Unit::kQueryStride + d * 32);
          queries[d][i] = even_of(four.x, four.y);
          queries[d][i + 2] = odd_of(four.x, four.y);
        }
      }
      return;
    }
    const uint32_t at = shared_address(from) + lane % 16 * Unit::kQueryStride + lane / 16 * 16;
#pragma unroll
    for (int d = 0; d < Dim / 16; ++d) load_matrices(queries[d], at + d * 32);
  }

  // The products of all rows with this reader's 16 positions. Returns bits of all that it read.
  __device__ uint32_t multiply_qk(float (&products)[2][4], uint32_t keys) const {
    uint32_t read = 0;
    const int lane = static_cast<int>(threadIdx.x);
    const int row = lane / 16 * 8 + lane % 8;
    const uint32_t at =
        keys + Unit::group_offset(reader) + row * 128 + Unit::chunk_offset(row, lane / 8 % 2);
#pragma unroll
    for (int d = 0; d < Dim / 16; ++d) {
      const uint32_t(&a)[4] = queries[d];
      uint32_t b[4];
      load_matrices(b, Unit::step_on(at, d));
      mma_bf16(products[0], a[0], a[1], a[2], a[3], b[0], b[1]);
      mma_bf16(products[1], a[0], a[1], a[2], a[3], b[2], b[3]);
      read |= b[3];
    }
    return read;
  }

  // The same with codes, those of 32 dimensions at a time.
  __device__ uint32_t multiply_qk_codes(float (&products)[2][4], uint32_t keys) const {
    uint32_t read = 0;
    const int lane = static_cast<int>(threadIdx.x);
    const uint32_t at = keys + Unit::group_offset(reader) + Unit::code_offset(lane % 16, lane / 16);
#pragma unroll
    for (int d = 0; d < Dim / 16; d += 2) {
      uint32_t words[4];
      load_matrices(words, at ^ d * 16);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t(&a)[4] = queries[d + i / 2];
        const WidenedCodes b = widen_codes(words[i]);
        mma_bf16(products[i % 2], a[0], a[1], a[2], a[3], b.even, b.odd);
      }
      read |= words[3];
    }
    return read;
  }

  __device__ void sync_team() const {
    asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(kReaders * 32) : "memory");
  }

  // The highest products of this lane's rows in the unit. own: those of this reader's positions.
  template <int Halves>
  __device__ void find_highest(float (&highest)[2], const float (&own)[2][4]) {
    const int row = static_cast<int>(threadIdx.x) / 4;
#pragma unroll
    for (int i = 0; i < Halves; ++i) {
      float top =
          fmaxf(fmaxf(own[0][i * 2], own[0][i * 2 + 1]), fmaxf(own[1][i * 2], own[1][i * 2 + 1]));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
      if (threadIdx.x % 4 == 0) state.tops[row + i * 8][reader] = top;
    }
    sync_team();
#pragma unroll
    for (int i = 0; i < Halves; ++i) {
      const auto tops = *reinterpret_cast<const float4*>(state.tops[row + i * 8]);
      highest[i] = fmaxf(fmaxf(tops.x, tops.y), fmaxf(tops.z, tops.w));
    }
  }

  // Brings the weights of all readers together.
  template <int Halves>
  __device__ void share(Scores<Dim>& weights, const float (&own)[2][4]) {
#pragma unroll
    for (int i = 0; i < Halves; ++i) {
      state.weights[reader][i][threadIdx.x] =
          make_float4(own[0][i * 2], own[0][i * 2 + 1], own[1][i * 2], own[1][i * 2 + 1]);
    }
    sync_team();
#pragma unroll
    for (int from = 0; from < kReaders; ++from) {
#pragma unroll
      for (int i = 0; i < Halves; ++i) {
        const float4 four = state.weights[from][i][threadIdx.x];
        weights[from * 2][i * 2] = four.x;
        weights[from * 2][i * 2 + 1] = four.y;
        weights[from * 2 + 1][i * 2] = four.z;
        weights[from * 2 + 1][i * 2 + 1] = four.w;
      }
    }
  }

  // What weigh_products does, each reader for its own positions.
  template <int Halves>
  __device__ void weigh(Values& part, Scores<Dim>& weights, float (&own)[2][4], int begin,
                        const RowLimits& limits) {
    if (!limits.see_all(begin)) mask_products<Halves>(own, begin + reader * 16, limits);
    float highest[2];
    find_highest<Halves>(highest, own);
    float keeps[2];
#pragma unroll
    for (int i = 0; i < Halves; ++i) {
      weigh_scores(part, own, keeps, i, __fmul_rn(highest[i], scoring.scale), scoring.scale);
    }
    share<Halves>(weights, own);
    add_weights<Halves>(part, weights, keeps);
    rescale_values<Unit::kPart, Halves>(part, keeps);
  }

  // Positions that no row sees have weight 0, but what lies there may be no number. Each reader
  // clears what it reads.
  __device__ void clear_unseen(uint8_t* values, int begin, const QueryTile& tile) const {
    if constexpr (Codes) return;  // all are numbers
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

  // Returns bits of all that it read.
  template <int Halves>
  __device__ uint32_t multiply_pv(Values& part, const Scores<Dim>& weights, uint32_t values) const {
    uint32_t read = 0;
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
        read |= b[3];
      }
    }
    return read;
  }

  // The same with codes: a load brings two chunks of 16 dimensions of 16 positions, or one of 32
  // where this reader has only one.
  template <int Halves>
  __device__ uint32_t multiply_pv_codes(Values& part, const Scores<Dim>& weights,
                                        uint32_t values) const {
    constexpr int kChunks = Unit::kPart / 16;
    constexpr int kGroups = 2 / kChunks;  // of 16 positions
    uint32_t read = 0;
    const int lane = static_cast<int>(threadIdx.x);
    const int group = kGroups == 2 ? lane / 16 : 0;
    const int chunk = reader * kChunks + (kChunks == 2 ? lane / 16 : 0);
    const uint32_t at = values + Unit::group_offset(group) + Unit::code_offset(lane % 16, chunk);
#pragma unroll
    for (int from = 0; from < kUnit / 16; from += kGroups) {
      uint32_t words[4];
      load_matrices_transposed(words, at + Unit::group_offset(from));
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int n = kGroups == 2 ? from + i : from;
        const int d = kChunks == 2 ? i * 2 : 0;
        const float(&low)[4] = weights[n * 2];
        const float(&high)[4] = weights[n * 2 + 1];
        const uint32_t a0 = pack_bf16(low[0], low[1]);
        const uint32_t a1 = Halves == 2 ? pack_bf16(low[2], low[3]) : 0;
        const uint32_t a2 = pack_bf16(high[0], high[1]);
        const uint32_t a3 = Halves == 2 ? pack_bf16(high[2], high[3]) : 0;
        const WidenedCodes near = widen_codes(words[i * 2]);
        const WidenedCodes far = widen_codes(words[i * 2 + 1]);
        mma_bf16(part.values[d], a0, a1, a2, a3, near.even, far.even);
        mma_bf16(part.values[d + 1], a0, a1, a2, a3, near.odd, far.odd);
      }
      read |= words[3];
    }
    return read;
  }

  template <int Halves>
  __device__ void add_unit(Values& part, int begin, const AttentionJob& job,
                           const RowLimits& limits) {
    float products[2][4] = {};
    const uint32_t keys = shared_address(wait_unit());
    if constexpr (Codes) {
      release_unit(multiply_qk_codes(products, keys));
    } else {
      release_unit(multiply_qk(products, keys));
    }
    if (scoring.capped) {
#pragma unroll
      for (int i = 0; i < 8; ++i) products[i / 4][i % 4] = capped(scoring, products[i / 4][i % 4]);
    }
    Scores<Dim> weights;
    weigh<Halves>(part, weights, products, begin, limits);
    uint8_t* values = wait_unit();
    clear_unseen(values, begin, job.tile);
    if constexpr (Codes) {
      release_unit(multiply_pv_codes<Halves>(part, weights, shared_address(values)));
    } else {
      release_unit(multiply_pv<Halves>(part, weights, shared_address(values)));
    }
  }

  template <int Halves>
  __device__ void attend(const AttentionJob& job) {
    const RowLimits limits = row_limits<Unit::kPart>(args, job.tile);
    const OwnRows<Halves> rows(job.tile);
    Values sum;  // of the splits since the last that was left
    Values part;
    for (int unit = job.first_unit; unit <= job.last_unit;) {
      const int end = min(next_split(unit + 1), job.last_unit + 1);
      for (; unit < end; ++unit) add_unit<Halves>(part, unit * kUnit, job, limits);
      finish(part);
      merge_into<Unit::kPart>(sum, part);
      part = Values{};
      if (job.folds && end <= job.last_unit) continue;
      if (job.partials < 0) return store(rows, job.tile, sum);
      store(rows, job, job.folds ? job.folded : split_of_unit(end - 1), sum);
      sum = Values{};
    }
  }

  // Of this lane's rows of the tile, lane / 4 and, with two halves, lane / 4 + 8: found ahead,
  // while the first keys are on their way.
  template <int Halves>
  struct OwnRows {
    int token[Halves];  // -1: there is none
    int head[Halves];   // query head

    __device__ explicit OwnRows(const QueryTile& tile) {
#pragma unroll
      for (int i = 0; i < Halves; ++i) {
        const int m = static_cast<int>(threadIdx.x) / 4 + i * 8;
        token[i] = m / tile.heads < tile.num_tokens ? m / tile.heads : -1;
        head[i] = tile.first_head + m % tile.heads;
      }
    }
  };

  template <int Halves>
  __device__ void store(const OwnRows<Halves>& rows, const AttentionJob& job, int split,
                        const Values& part) const {
#pragma unroll
    for (int i = 0; i < Halves; ++i) {
      if (rows.token[i] < 0) continue;
      const PartialRow parts = partial_row(job, rows.token[i]);
      const int64_t index =
          parts.first + int64_t{rows.head[i]} * parts.splits + split - parts.first_split;
      if (threadIdx.x % 4 == 0 && reader == 0) {
        *shape.space.state(index) = make_float2(part.highest[i], part.weights[i]);
      }
      float* to = shape.space.values(index) + reader * Unit::kPart;
      for_each_pair<Codes>(part.values, i, [&](int d, float a, float b) {
        *reinterpret_cast<float2*>(to + d) = make_float2(a, b);
      });
    }
  }

  template <int Halves>
  __device__ void store(const OwnRows<Halves>& rows, const QueryTile& tile,
                        const Values& all) const {
#pragma unroll
    for (int i = 0; i < Halves; ++i) {
      if (rows.token[i] < 0) continue;
      const int64_t row = tile.first_row + rows.token[i];
      auto* to = static_cast<__nv_bfloat16*>(args.out) +
                 (row * args.num_heads + rows.head[i]) * Dim + reader * Unit::kPart;
      const float inverse =
          inverse_of(with_sink(args, rows.head[i], all.highest[i], all.weights[i]));
      const auto ended = [&](float value) {
        const float result = __fmul_rn(value, inverse);
        return Codes ? scaled(args, row, tile.kv_head, result) : result;
      };
      for_each_pair<Codes>(all.values, i, [&](int d, float a, float b) {
        *reinterpret_cast<uint32_t*>(to + d) = pack_bf16(ended(a), ended(b));
      });
    }
  }

  // Where a token of a tile that is cut has its partial results.
  __device__ PartialRow partial_row(const AttentionJob& job, int token) const {
    const int splits =
        AttentionSplits::of(job.tile.last_kv) - AttentionSplits::of(job.tile.first_kv) + 1;
    return {job.partials + token * args.num_heads * splits, splits, job.folded, 0};
  }

  __device__ void tell_partials(const AttentionJob& job) const {
    const int row = static_cast<int>(threadIdx.x);
    if (shape.space.capacity == 0 || reader > 0 || row >= job.tile.num_tokens) return;
    PartialRow parts = partial_row(job, row);
    if (job.partials < 0) parts.first = -1;
    shape.space.rows()[job.tile.first_row + row] = parts;
  }

  // Counts the job's splits as left and tells whether they were the tile's last; then all are
  // visible. All readers of a team together.
  __device__ bool count_left(const AttentionJob& job) const {
    __threadfence();
    sync_team();
    if (reader == 0 && threadIdx.x == 0) {
      uint32_t* left = args.sync + job.tile.first_row * args.num_heads + job.tile.first_head;
      const int own =
          job.folds ? 1 : split_of_unit(job.last_unit) - split_of_unit(job.first_unit) + 1;
      const auto before = static_cast<int>(atomicAdd(left, static_cast<uint32_t>(own)));
      state.joins = before + own == job.num_splits;
      if (state.joins) *left = 0;
      __threadfence();
    }
    sync_team();
    return state.joins;
  }

  // Each reader joins every kReaders-th row of the tile.
  __device__ void join(const AttentionJob& job) const {
    constexpr int kDims = Dim / 32;  // of a lane
    const int d = static_cast<int>(threadIdx.x) * kDims;
    for (int m = reader; m < job.tile.num_tokens * job.tile.heads; m += kReaders) {
      const int token = m / job.tile.heads;
      const int head = job.tile.first_head + m % job.tile.heads;
      const PartialRange range(args, partial_row(job, token), job.tile.position + token, head);
      const PartialSum<kDims> sum = fold_by_warp<kDims>(shape.space, range, d);
      const float weights = with_sink(args, head, sum.highest, sum.weights);
      const int64_t row = job.tile.first_row + token;
      auto* to = static_cast<__nv_bfloat16*>(args.out) + (row * args.num_heads + head) * Dim + d;
      const auto ended = [&](float value) {
        const float result = normalized(value, weights);
        return Codes ? scaled(args, row, job.tile.kv_head, result) : result;
      };
#pragma unroll
      for (int i = 0; i < kDims; i += 2) {
        *reinterpret_cast<uint32_t*>(to + i) =
            pack_bf16(ended(sum.values[i]), ended(sum.values[i + 1]));
      }
    }
  }

  __device__ void run() {
    for (RingPlace<TeamState<Codes>::kPlaces> place;; place.advance()) {
      wait_barrier(state.job_full + place.place, place.parity);
      const AttentionJob& job = state.jobs[place.place];
      if (job.tile.num_tokens == 0) return;
      if (job.leads) tell_partials(job);
      if (Codes) scoring = scoring_of_codes(args, job.tile.first_row, job.tile.kv_head);
      load_queries(memory.queries(team, place.place));
      job.tile.num_tokens* job.tile.heads <= 8 ? attend<1>(job) : attend<2>(job);
      if (shape.joins && job.partials >= 0 && count_left(job)) join(job);
      arrive(state.job_empty + place.place);
    }
  }
};

}  // namespace foretoken::cuda
