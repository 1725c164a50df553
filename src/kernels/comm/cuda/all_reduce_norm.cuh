#pragma once
#include <cuda_runtime.h>

#include "kernels/comm/all_reduce_norm.h"
#include "kernels/comm/cuda/rank_ops.cuh"
#include "kernels/comm/cuda/row_exchange.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/rows/cuda/norm_row.cuh"

namespace foretoken::cuda {

// Vectors of a row that a thread waits for at once, at most: they wait in registers.
inline constexpr int kMaxWaiting = 16;

// Four elements of T on the way.
__device__ inline uint4 words_of(float4 v) {
  return {__float_as_uint(v.x), __float_as_uint(v.y), __float_as_uint(v.z), __float_as_uint(v.w)};
}
__device__ inline float4 floats_of(uint4 w) {
  return {__uint_as_float(w.x), __uint_as_float(w.y), __uint_as_float(w.z), __uint_as_float(w.w)};
}
template <class T>
struct RowWords;
template <>
struct RowWords<float> {
  using Type = uint4;
  __device__ static uint4 of(float4 v) { return words_of(v); }
};
template <>
struct RowWords<__nv_bfloat16> {
  using Type = uint2;
  __device__ static uint2 of(float4 v) {
    const __nv_bfloat162 low = __floats2bfloat162_rn(v.x, v.y);
    const __nv_bfloat162 high = __floats2bfloat162_rn(v.z, v.w);
    return {*reinterpret_cast<const uint32_t*>(&low), *reinterpret_cast<const uint32_t*>(&high)};
  }
};

// What a thread does with rows among Ranks ranks, in the parts of NormRow.
template <class T, int Threads, int Vectors, int Ranks>
struct RankRows {
  static constexpr int kPeers = Ranks - 1;
  using Row = NormRow<Threads, Vectors>;
  using Words = typename RowWords<T>::Type;

  const AllReduceNormArgs& args;
  const CommView& comm;

  __device__ static int element(int j) { return (static_cast<int>(threadIdx.x) + j * Threads) * 4; }
  __device__ static int64_t row_bytes(int hidden) { return int64_t{hidden} * sizeof(float); }

  __device__ Row load(const float* rows, int row) const {
    Row values{args.hidden, {}};
    values.for_each([&](int at, float4& v) { v = load4(rows + int64_t{row} * args.hidden + at); });
    return values;
  }
  __device__ void send(const RowExchange& exchange, int peer, int64_t begin, Row& row) const {
    row.for_each([&](int at, float4& v) {
      exchange.send(peer, begin + at * int64_t{sizeof(float)}, words_of(v));
    });
  }
  __device__ float4 sum_of_ranks(float4 own, const uint4* theirs) const {
    float4 sum{};
#pragma unroll
    for (int r = 0; r < Ranks; ++r) {
      const uint4 low = theirs[r < kPeers ? r : kPeers - 1], high = theirs[r > 0 ? r - 1 : 0];
      const float4 part = r == comm.rank ? own : floats_of(r < comm.rank ? low : high);
      sum = r == 0 ? part : sum_of(sum, part);
    }
    return sum;
  }
  // row = the sum over the ranks, in their order, of it and what the others sent to `begin`.
  __device__ void sum(const RowExchange& exchange, int64_t begin, Row& row) const {
    constexpr int kAtOnce = kPeers * Vectors <= kMaxWaiting ? Vectors : 1;
#pragma unroll
    for (int first = 0; first < Vectors; first += kAtOnce) {
      uint4 words[kAtOnce * kPeers] = {};
      exchange.take(words, [&](int i) -> uint4* {
        const int at = element(first + i / kPeers);
        if (at >= args.hidden) return nullptr;
        return exchange.received<uint4>(exchange.peer(i % kPeers),
                                        begin + at * int64_t{sizeof(float)});
      });
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        row.values[first + j] = sum_of_ranks(row.values[first + j], words + j * kPeers);
      }
    }
  }
  // values += scale * delta, also in memory.
  __device__ void add(Row& values, const Row& delta, int row) const {
#pragma unroll
    for (int j = 0; j < Vectors; ++j) {
      float4& v = values.values[j];
      const float4 d = delta.values[j];
      v = {fmaf(d.x, args.delta_scale, v.x), fmaf(d.y, args.delta_scale, v.y),
           fmaf(d.z, args.delta_scale, v.z), fmaf(d.w, args.delta_scale, v.w)};
    }
    float* to = args.residual + int64_t{row} * args.hidden;
    values.for_each([&](int at, float4& v) { *reinterpret_cast<float4*>(to + at) = v; });
  }
  // Writes the others' rows, of which the one that rank r sent to `begin` is row first + r below
  // `live`.
  template <class Out>
  __device__ void place(const RowExchange& exchange, int64_t begin, int first, int live,
                        Out* rows) const {
    using W = typename RowWords<Out>::Type;
    constexpr int kAtOnce = kPeers * Vectors <= kMaxWaiting ? Vectors : 1;
#pragma unroll
    for (int from = 0; from < Vectors; from += kAtOnce) {
      W words[kAtOnce * kPeers] = {};
      const auto is_sent = [&](int i) {
        return element(from + i / kPeers) < args.hidden && first + exchange.peer(i % kPeers) < live;
      };
      exchange.take(words, [&](int i) -> W* {
        const int at = element(from + i / kPeers);
        return is_sent(i) ? exchange.received<W>(exchange.peer(i % kPeers),
                                                 begin + at * int64_t{sizeof(Out)})
                          : nullptr;
      });
#pragma unroll
      for (int i = 0; i < kAtOnce * kPeers; ++i) {
        if (!is_sent(i)) continue;
        const int64_t row = first + exchange.peer(i % kPeers);
        *reinterpret_cast<W*>(rows + row * args.hidden + element(from + i / kPeers)) = words[i];
      }
    }
  }
};

// Few rows: a block has one, gives it to every rank and sums and norms it as every rank does.
template <class T, int Threads, int Vectors, int Ranks>
__global__ void __launch_bounds__(Threads)
    sum_each_row_kernel(AllReduceNormArgs args, CommView comm, int first_row) {
  using Rows = RankRows<T, Threads, Vectors, Ranks>;
  auto weight = load_norm_weight<Threads, Vectors>(args.weight, args.hidden);
  wait_to_exchange(comm);
  const Rows rows{args, comm};
  const int row = first_row + static_cast<int>(blockIdx.x);
  auto delta = rows.load(args.delta, row), values = rows.load(args.residual, row);
  const int live = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
  if (live <= first_row) return;
  const RowExchange exchange(comm);
  if (row >= live) return;
  const int64_t begin = blockIdx.x * Rows::row_bytes(args.hidden);
#pragma unroll
  for (int k = 0; k < Rows::kPeers; ++k) rows.send(exchange, exchange.peer_after(k), begin, delta);
  rows.sum(exchange, begin, delta);
  rows.add(values, delta, row);
  store_normed(values, weight, values.scale(args.eps),
               static_cast<T*>(args.out) + int64_t{row} * args.hidden);
}

// Many rows: a block has as many as there are ranks, each of which sums and norms one and gives
// what becomes of it to the others: the normed row, and the residual unless that may stay dealt
// out.
template <class T, int Threads, int Vectors, int Ranks>
__global__ void __launch_bounds__(Threads)
    sum_dealt_rows_kernel(AllReduceNormArgs args, CommView comm, int first_row) {
  using Rows = RankRows<T, Threads, Vectors, Ranks>;
  constexpr int kPeers = Rows::kPeers;
  constexpr int kAtOnce = kPeers * Vectors <= kMaxWaiting ? kPeers : 1;
  auto weight = load_norm_weight<Threads, Vectors>(args.weight, args.hidden);
  wait_to_exchange(comm);
  const Rows rows{args, comm};
  const int first = first_row + static_cast<int>(blockIdx.x) * Ranks;
  const int live = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
  if (live <= first_row) return;
  const RowExchange exchange(comm);
  if (first >= live) return;
  const int64_t begin = blockIdx.x * Rows::row_bytes(args.hidden);
  const int own = first + comm.rank < live ? first + comm.rank : live - 1;
  auto delta = rows.load(args.delta, own), values = rows.load(args.residual, own);
#pragma unroll
  for (int from = 0; from < kPeers; from += kAtOnce) {
    NormRow<Threads, Vectors> given[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int row = first + exchange.peer_after(from + k);
      given[k] = rows.load(args.delta, row < live ? row : live - 1);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int peer = exchange.peer_after(from + k);
      if (first + peer < live) rows.send(exchange, peer, begin, given[k]);
    }
  }
  T* out = static_cast<T*>(args.out);
  const int64_t begin_out = blockIdx.x * int64_t{args.hidden} * int64_t{sizeof(T)} + kRowPartBytes;
  const int64_t begin_residual = begin + 2 * kRowPartBytes;
  if (first + comm.rank < live) {
    rows.sum(exchange, begin, delta);
    rows.add(values, delta, own);
    const float scale = values.scale(args.eps);
#pragma unroll
    for (int j = 0; j < Vectors; ++j) {
      const int at = Rows::element(j);
      if (at >= args.hidden) continue;
      const auto words = RowWords<T>::of(normed(values.values[j], scale, weight.values[j]));
      for (int k = 0; k < kPeers; ++k) {
        exchange.send(exchange.peer_after(k), begin_out + at * int64_t{sizeof(T)}, words);
      }
      *reinterpret_cast<typename Rows::Words*>(out + int64_t{own} * args.hidden + at) = words;
    }
    for (int k = 0; args.deals_residual == 0 && k < kPeers; ++k) {
      rows.send(exchange, exchange.peer_after(k), begin_residual, values);
    }
  }
  rows.place(exchange, begin_out, first, live, out);
  if (args.deals_residual == 0) rows.place(exchange, begin_residual, first, live, args.residual);
}

}  // namespace foretoken::cuda
