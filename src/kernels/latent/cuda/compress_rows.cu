#include "kernels/latent/compress_rows.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/latent/cuda/coded_entry.cuh"
#include "kernels/latent/cuda/tail_turn.cuh"
#include "kernels/sample_math.h"

namespace foretoken::cuda {
namespace {

using sample_math::add;
using sample_math::mul;

constexpr int kOwnChannels = kMaxCompressedDim / kTailThreads;  // of a thread

__device__ StateRows rows_of(const CompressRowsArgs& args) {
  return {args.positions, args.row_slot, live_rows(args.counts, RowKind::kToken, 0, args.max_rows)};
}

// What a thread's channels of the window's positions make, one after the other; what several of
// them read is on its way at once. Channels beyond the last are the last one's.
__device__ void pool_window(const CompressRowsArgs& args, const StateRows& rows, int row,
                            float (&entry)[kOwnChannels]) {
  const int span = min(compressed_span(args), args.positions[row] + 1);
  float largest[kOwnChannels], sums[kOwnChannels];
  int channels[kOwnChannels];
#pragma unroll
  for (int j = 0; j < kOwnChannels; ++j) {
    channels[j] = min(static_cast<int>(threadIdx.x) + j * kTailThreads, args.head_dim - 1);
    largest[j] = -INFINITY;
    sums[j] = entry[j] = 0;
  }
#pragma unroll 4
  for (int back = span - 1; back >= 0; --back) {
    const CompressedTerm term = compressed_term(args, rows, row, back);
#pragma unroll
    for (int j = 0; j < kOwnChannels; ++j) {
      const float gate = add(term.gates[channels[j]], term.bias[channels[j]]);
      largest[j] = gate > largest[j] ? gate : largest[j];
    }
  }
#pragma unroll 4
  for (int back = span - 1; back >= 0; --back) {
    const CompressedTerm term = compressed_term(args, rows, row, back);
#pragma unroll
    for (int j = 0; j < kOwnChannels; ++j) {
      const float gate = add(term.gates[channels[j]], term.bias[channels[j]]);
      const float weight = sample_math::exp_nonpositive(sample_math::sub(gate, largest[j]));
      sums[j] = add(sums[j], weight);
      entry[j] = add(entry[j], mul(weight, term.values[channels[j]]));
    }
  }
#pragma unroll
  for (int j = 0; j < kOwnChannels; ++j) entry[j] = sample_math::div(entry[j], sums[j]);
}

// One block: one row, if it ends a window.
template <class T>
__global__ void __launch_bounds__(kTailThreads) make_entries_kernel(CompressRowsArgs args) {
  __shared__ float normed[kMaxCompressedDim];
  __shared__ float warp_sums[kTailThreads / 32];
  wait_for_all_before();
  let_next_start();
  const StateRows rows = rows_of(args);
  const int row = blockIdx.x;
  if (row >= rows.count || !makes_entry(args, args.positions[row])) return;
  float entry[kOwnChannels];
  pool_window(args, rows, row, entry);
  float squares = 0;
  for (int j = 0; j < kOwnChannels; ++j) {
    const int c = threadIdx.x + j * kTailThreads;
    if (c < args.head_dim) squares += entry[j] * entry[j];
  }
  const float mean = sum_of_tail_block(squares, warp_sums) / static_cast<float>(args.head_dim);
  const float factor = 1.0f / sqrtf(mean + args.norm_eps);
  for (int j = 0; j < kOwnChannels; ++j) {
    const int c = threadIdx.x + j * kTailThreads;
    if (c < args.head_dim) {
      normed[c] = args.norm == nullptr ? entry[j] : entry[j] * factor * args.norm[c];
    }
  }
  __syncthreads();
  const int64_t place =
      compressed_entry(args.kv_slot[row], args.block_size, args.ratio, args.context_size);
  const TailPlace tail{args.head_dim - args.rope_dim,
                       static_cast<float>(args.positions[row] + 1 - args.ratio)};
  const auto head = [&](int i) { return normed[i]; };
  const auto turned = [&](int i) { return tail.element(i, args.inv_freq, args.scaling, head); };
  store_turned<T>(entry_form(args), turned, args.entries, place);
}

// One block: what one row leaves for those behind it.
__global__ void __launch_bounds__(kTailThreads) keep_inputs_kernel(CompressRowsArgs args) {
  wait_for_previous();
  const StateRows rows = rows_of(args);
  const int row = blockIdx.x;
  if (row >= rows.count || rows.same_run(row, row + args.history_rows)) return;
  const int64_t slot = args.row_slot[row], place = args.positions[row] % args.history_rows;
  float* to = args.history + (slot * args.history_rows + place) * args.history_stride;
  const float* from = args.x + int64_t{row} * args.x_stride;
  for (int i = threadIdx.x; i < 2 * compressed_width(args); i += kTailThreads) to[i] = from[i];
}

}  // namespace

void launch_compress_rows(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<CompressRowsArgs>(packed);
  const auto kernel =
      args.dtype == DType::kBF16 ? make_entries_kernel<__nv_bfloat16> : make_entries_kernel<float>;
  launch_kernel(kernel, args.max_rows, kTailThreads, 0, stream, args);
  launch_kernel(keep_inputs_kernel, args.max_rows, kTailThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
