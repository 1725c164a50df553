#include "kernels/draft/pair_rows.h"

#include "base/check.h"
#include "kernels/cuda/launchers.h"
#include "kernels/rows/cuda/norm_row.cuh"

namespace foretoken::cuda {
namespace {

// Rows of any length: out[c] = from[c] * scale, normed where a weight is given.
struct AnyRow {
  static constexpr int kThreads = 512;

  template <class From, class To>
  static __device__ void write(const From* from, float scale, const float* weight, float eps,
                               To* out, int hidden) {
    float factor = 1.0f;
    if (weight != nullptr) {
      float squares = 0;
      for (int c = threadIdx.x; c < hidden; c += kThreads) {
        const float value = to_float(from[c]) * scale;
        squares = fmaf(value, value, squares);
      }
      factor = 1.0f / sqrtf(block_sum<kThreads>(squares) / static_cast<float>(hidden) + eps);
    }
    for (int c = threadIdx.x; c < hidden; c += kThreads) {
      const float value = to_float(from[c]) * scale;
      out[c] = from_float<To>(weight == nullptr ? value : value * factor * weight[c]);
    }
  }
};

// The same for rows that NormRow takes, in the norm op's order.
template <int Threads, int Vectors>
struct VectorRow {
  static constexpr int kThreads = Threads;

  template <class From, class To>
  static __device__ void write(const From* from, float scale, const float* weight, float eps,
                               To* out, int hidden) {
    NormRow<Threads, Vectors> values{hidden, {}};
    values.for_each([&](int at, float4& v) {
      v = load4(from + at);
      v = {v.x * scale, v.y * scale, v.z * scale, v.w * scale};
    });
    if (weight == nullptr) {
      values.for_each([&](int at, float4& v) { store4(out + at, v); });
      return;
    }
    auto weights = load_norm_weight<Threads, Vectors>(weight, hidden);
    store_normed(values, weights, values.scale(eps), out);
  }
};

// One block: one half of one row.
template <class Row, class Table, class T, class State>
__global__ void __launch_bounds__(Row::kThreads) pair_rows_kernel(PairRowsArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  const int half = args.state_first != 0 ? 1 - static_cast<int>(blockIdx.y) : blockIdx.y;
  T* out = static_cast<T*>(args.out) + (int64_t{row} * 2 + half) * args.hidden;
  if (blockIdx.y == 0) {
    const int id = args.token_ids[row];
    const int64_t at = id >= 0 && id < args.vocab ? id : 0;
    Row::write(static_cast<const Table*>(args.table.data) + at * args.hidden, args.scale,
               args.embed_norm, args.eps, out, args.hidden);
  } else {
    const int64_t from = args.from == nullptr ? row : args.from[row];
    Row::write(static_cast<const State*>(args.states) + from * args.hidden, 1.0f, args.states_norm,
               args.eps, out, args.hidden);
  }
}

template <class Row, class Table, class T>
void launch_rows(const PairRowsArgs& args, cudaStream_t stream) {
  const auto kernel = args.states_dtype == DType::kBF16
                          ? pair_rows_kernel<Row, Table, T, __nv_bfloat16>
                          : pair_rows_kernel<Row, Table, T, float>;
  launch_kernel(kernel, dim3(args.max_rows, 2), Row::kThreads, 0, stream, args);
}

template <class Table, class T>
void launch(const PairRowsArgs& args, cudaStream_t stream) {
  const bool taken = with_norm_shape(args.hidden, [&](auto threads, auto vectors) {
    launch_rows<VectorRow<threads(), vectors()>, Table, T>(args, stream);
  });
  if (!taken) launch_rows<AnyRow, Table, T>(args, stream);
}

}  // namespace

void launch_pair_rows(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<PairRowsArgs>(packed);
  FT_CHECK(args.table.together == 1 &&
           !args.table.quantized);  // no weight of this device lends its rows
  switch (args.table.dtype) {
    case DType::kBF16:
      return launch<__nv_bfloat16, __nv_bfloat16>(args, stream);
    case DType::kF16:
      return launch<__half, float>(args, stream);
    default:
      return launch<float, float>(args, stream);
  }
}

}  // namespace foretoken::cuda
