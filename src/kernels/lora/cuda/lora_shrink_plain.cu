#include "kernels/lora/cuda/lora_shrink_plain.cuh"

#include "kernels/lora/cuda/lora_tiles.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kPlainThreads = 256;
constexpr int kPlainRanks = 4;  // rows of a that a block multiplies at once
constexpr int kPlainSplits = kPlainThreads / 32 / kPlainRanks;  // of its inputs, fixed
static_assert(kLoraRankStep % kPlainRanks == 0);

// N elements at `from`: 8, or 1 where rows do not begin on 16 bytes.
template <int N>
__device__ void load_elements(const float* from, float (&out)[N]) {
  if constexpr (N == 8) {
    const float4 low = *reinterpret_cast<const float4*>(from);
    const float4 high = *reinterpret_cast<const float4*>(from + 4);
    out[0] = low.x, out[1] = low.y, out[2] = low.z, out[3] = low.w;
    out[4] = high.x, out[5] = high.y, out[6] = high.z, out[7] = high.w;
  } else {
    out[0] = *from;
  }
}
template <int N>
__device__ void load_elements(const __nv_bfloat16* from, float (&out)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) out[i] = __bfloat162float(from[i]);
}

// A warp's share of the products of one row of a with kRows rows of x, from input `begin` to `end`:
// lane by lane a chain, then the lanes, in one order for any number of rows. The sums are lane 0's.
template <int N, int kRows, class T>
__device__ void multiply_rows(const T* a, const T* x, const int32_t* rows, int k, int begin,
                              int end, float* sums) {
  const T* x_rows[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) x_rows[r] = x + int64_t{rows[r]} * k;
  float sum[kRows] = {};
  const int lane = threadIdx.x % 32;
#pragma unroll 4
  for (int at = begin + lane * N; at < end; at += kPlainSplits * 32 * N) {
    float left[N];
    load_elements(a + at, left);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float right[N];
      load_elements(x_rows[r] + at, right);
#pragma unroll
      for (int i = 0; i < N; ++i) sum[r] = fmaf(left[i], right[i], sum[r]);
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) sum[r] += __shfl_xor_sync(~0u, sum[r], step);
    if (lane == 0) sums[r * kPlainRanks] = sum[r];
  }
}

// A tile of rows, a product, kPlainRanks rows of its a and kLoraSplitK inputs; each warp has one of
// these rows and a part of the inputs.
struct PlainItem {
  LoraTile tile;
  LoraMatrix matrix;
  int part;
  int first_rank;
  int split;
};

__device__ PlainItem plain_item(const LoraShrinkArgs& args, int index) {
  const int splits = lora_splits(args.k), groups = args.max_rank / kPlainRanks;
  PlainItem item;
  item.split = index % splits;
  index /= splits;
  item.first_rank = index % groups * kPlainRanks;
  index /= groups;
  item.part = index % args.num_parts;
  item.tile = args.rows.tiles[index / args.num_parts];
  item.matrix = lora_matrix(args.matrices, item.tile.adapter, args.adapter_stride, item.part);
  return item;
}

template <class T, int N>
__global__ void __launch_bounds__(kPlainThreads) lora_shrink_plain_kernel(LoraShrinkArgs args) {
  wait_for_previous();
  __shared__ float partial[kPlainSplits][kLoraTileRows][kPlainRanks];
  const int splits = lora_splits(args.k);
  const int count = *args.rows.num_tiles * args.num_parts * (args.max_rank / kPlainRanks) * splits;
  const int own = threadIdx.x / 32 % kPlainRanks, share = threadIdx.x / 32 / kPlainRanks;
  for (int index = blockIdx.x; index < count; index += gridDim.x) {
    const PlainItem item = plain_item(args, index);
    if (item.first_rank >= item.matrix.rank) continue;
    const T* const a = lora_a<T>(item.matrix) + int64_t{item.first_rank + own} * args.k;
    const T* const x = static_cast<const T*>(args.x);
    const int32_t* const rows = args.rows.rows + item.tile.begin;
    const int begin = item.split * kLoraSplitK, end = min(begin + kLoraSplitK, args.k);
    const int first = begin + share * 32 * N;
    for (int done = 0; done < item.tile.count;) {
      float* const sums = &partial[share][done][own];
      if (item.tile.count - done >= 4) {
        multiply_rows<N, 4>(a, x, rows + done, args.k, first, end, sums);
        done += 4;
      } else {
        multiply_rows<N, 1>(a, x, rows + done, args.k, first, end, sums);
        done += 1;
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < item.tile.count * kPlainRanks; i += kPlainThreads) {
      const int row = i / kPlainRanks, rank = i % kPlainRanks;
      float sum = partial[0][row][rank];
#pragma unroll
      for (int s = 1; s < kPlainSplits; ++s) sum += partial[s][row][rank];
      const int64_t place = int64_t{item.tile.begin + row} * args.num_parts + item.part;
      args.t[(place * splits + item.split) * args.max_rank + item.first_rank + rank] =
          item.matrix.scale * sum;
    }
    __syncthreads();
  }
}

template <class T>
void launch_plain(const LoraShrinkArgs& args, cudaStream_t stream) {
  const int64_t items = int64_t{max_lora_tiles(args.max_rows, args.max_adapters)} * args.num_parts *
                        (args.max_rank / kPlainRanks) * lora_splits(args.k);
  const auto kernel =
      args.k % 8 == 0 ? lora_shrink_plain_kernel<T, 8> : lora_shrink_plain_kernel<T, 1>;
  launch_kernel(kernel, lora_blocks(items, 8), kPlainThreads, 0, stream, args);
}

}  // namespace

void launch_lora_shrink_plain(const LoraShrinkArgs& args, cudaStream_t stream) {
  args.dtype == DType::kBF16 ? launch_plain<__nv_bfloat16>(args, stream)
                             : launch_plain<float>(args, stream);
}

}  // namespace foretoken::cuda
