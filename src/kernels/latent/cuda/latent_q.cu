#include "kernels/latent/latent_q.h"

#include "kernels/attention/cuda/rotation.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/latent/cuda/head_product.cuh"
#include "kernels/rows/cuda/norm_row.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kHeadsPerBlock = 8;

// Element i of the part that turns; x: its head's part.
__device__ float turned_element(const float* x, int i, int half, float2 by) {
  return i < half ? x[i] * by.x - x[i + half] * by.y : x[i] * by.x + x[i - half] * by.y;
}

// One block: one row, kHeadsPerBlock of its heads.
template <class T>
__global__ void __launch_bounds__(kThreads) latent_q_kernel(LatentQArgs args) {
  __shared__ float2 turns[kMaxHeadDim / 2];  // (cos, sin)
  wait_for_all_before();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= args.counts->num_rows) return;
  const int half = args.rope_dim / 2;
  const float position = turning_position(args.positions, row, args.position_shift);
  for (int i = threadIdx.x; i < half; i += kThreads) {
    turns[i] = turn_at(args.inv_freq, i, position, args.scaling);
  }
  __syncthreads();
  const float scale = query_scale_at(args.query_scale, position);
  const int first = blockIdx.y * kHeadsPerBlock;
  const int count = min(kHeadsPerBlock, args.num_heads - first);
  const int dim = args.nope_dim + args.rope_dim;
  const int entry = args.kv_rank + args.rope_dim;
  const float* x = args.x + int64_t{row} * args.x_stride + int64_t{first} * dim;
  const int64_t head = int64_t{row} * args.num_heads + first;
  T* nope = static_cast<T*>(args.nope) + head * args.nope_dim;
  T* q = static_cast<T*>(args.q) + head * entry + args.kv_rank;
  for (int e = threadIdx.x; e < count * dim; e += kThreads) {
    const int h = e / dim;
    const int at = e % dim;
    const float* from = x + h * dim;
    if (at < args.nope_dim) {
      nope[h * args.nope_dim + at] = from_float<T>(from[at] * scale);
      continue;
    }
    const int i = at - args.nope_dim;
    const float turned =
        turned_element(from + args.nope_dim, i, half, turns[i < half ? i : i - half]);
    q[h * entry + i] = from_float<T>(turned * scale);
  }
}

// What a block of the fused kernel computes: some rows of one head.
struct QueryTile {
  const LatentQArgs& args;
  int head;
  int row;   // the first one
  int rows;  // that are readable from there on, at most the shape's

  __device__ int entry() const { return args.kv_rank + args.rope_dim; }
  __device__ const float* x(int r) const {
    return args.x + int64_t{row + r} * args.x_stride +
           int64_t{head} * (args.nope_dim + args.rope_dim);
  }
  __device__ __nv_bfloat16* q(int r) const {
    return static_cast<__nv_bfloat16*>(args.q) +
           (int64_t{row + r} * args.num_heads + head) * entry();
  }
  __device__ float scale(int r) const {
    if (args.query_scale.beta == 0) return 1.0f;
    return query_scale_at(args.query_scale,
                          turning_position(args.positions, row + r, args.position_shift));
  }

  // Operand x: the first parts, scaled and rounded. Several chunks are read before any is stored.
  template <class Shape>
  __device__ void put_first_parts(const HeadOperands<Shape>& operands) const {
    constexpr int kAtOnce = 4;
    const int chunks = operands.atoms * 8;
    for (int base = threadIdx.x; base < rows * chunks; base += kAtOnce * Shape::kThreads) {
      float4 low[kAtOnce], high[kAtOnce];
      float scales[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int at = base + i * Shape::kThreads;
        const int chunk = at % chunks;
        const bool valid = at < rows * chunks && chunk * 8 < args.nope_dim;
        const float* from = x(valid ? at / chunks : 0) + (valid ? chunk * 8 : 0);
        low[i] = valid ? load4(from) : float4{};
        high[i] = valid ? load4(from + 4) : float4{};
        scales[i] = valid ? scale(at / chunks) : 1.0f;
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int at = base + i * Shape::kThreads;
        if (at >= rows * chunks) break;
        const float s = scales[i];
        *operands.x_place(at / chunks, at % chunks) = {
            pack_bf16(low[i].x * s, low[i].y * s), pack_bf16(low[i].z * s, low[i].w * s),
            pack_bf16(high[i].x * s, high[i].y * s), pack_bf16(high[i].z * s, high[i].w * s)};
      }
    }
  }

  // The parts that turn, of every `step`-th row from `first` on.
  template <class Shape>
  __device__ void store_turned(int first, int step, int live) const {
    const int half = args.rope_dim / 2;
    const int own =
        min(rows, live - row) > first ? (min(rows, live - row) - first - 1) / step + 1 : 0;
    for (int i = threadIdx.x; i < own * half; i += Shape::kThreads) {
      const int r = first + i / half * step;
      const int pair = i % half;
      const float position = turning_position(args.positions, row + r, args.position_shift);
      const float2 by = turn_at(args.inv_freq, pair, position, args.scaling);
      const float* part = x(r) + args.nope_dim;
      const float s = query_scale_at(args.query_scale, position);
      __nv_bfloat16* to = q(r) + args.kv_rank;
      to[pair] = __float2bfloat16_rn(turned_element(part, pair, half, by) * s);
      to[pair + half] = __float2bfloat16_rn(turned_element(part, pair + half, half, by) * s);
    }
  }
};

// Block (tile of a latent's columns, head, tile of rows): the same with `absorb`. The blocks of a
// head share the parts that turn.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads) latent_queries_kernel(LatentQArgs args) {
  extern __shared__ uint4 query_operands[];
  const HeadOperands<Shape> operands(query_operands, args.nope_dim);
  const int column = static_cast<int>(blockIdx.x) * Shape::kRowsW;
  const int row = static_cast<int>(blockIdx.z) * Shape::kRowsX;
  const QueryTile tile{args, static_cast<int>(blockIdx.y), row,
                       min(Shape::kRowsX, args.max_rows - row)};
  operands.load_weight(args.absorb, (int64_t{tile.head} * args.kv_rank + column) / kGroupRows,
                       (args.kv_rank - column) / kGroupRows, 0, operands.atoms);
  commit_copies();
  wait_for_all_before();
  let_next_start();
  const int live = min(args.counts->num_rows, args.max_rows);
  if (row > 0 && row >= live) {
    wait_copies<0>();
    return;
  }
  tile.put_first_parts(operands);
  tile.template store_turned<Shape>(blockIdx.x, gridDim.x, live);
  wait_copies<0>();
  __syncthreads();
  HeadSums<Shape> c = {};
  operands.multiply(c, 0, operands.atoms);
  const int64_t row_stride = int64_t{args.num_heads} * tile.entry();
  store_head_tile<Shape>(query_operands,
                         {tile.q(0) + column, row_stride, live - row, args.kv_rank - column}, c);
}

template <class Shape>
bool launch_queries(const LatentQArgs& args, cudaStream_t stream) {
  const dim3 grid(ceil_div(args.kv_rank, Shape::kRowsW), args.num_heads,
                  ceil_div(args.max_rows, Shape::kRowsX));
  return launch_head_tiles<Shape>(latent_queries_kernel<Shape>, grid, args.nope_dim, stream, args);
}

// Vectors of four floats and of eight elements.
bool has_vectors(const LatentQArgs& args) {
  const int dim = args.nope_dim + args.rope_dim;
  return args.dtype == DType::kBF16 && args.nope_dim % 8 == 0 && dim % 4 == 0 &&
         args.x_stride % 4 == 0 && (args.kv_rank + args.rope_dim) % 8 == 0 && args.nope_dim <= 512;
}

// Many rows in wide tiles, so that their queries are read less often.
bool launch_fused(const LatentQArgs& args, cudaStream_t stream) {
  if (args.absorb == nullptr || !has_vectors(args)) return false;
  if (args.max_rows <= 16) return launch_queries<HeadShape<1, 4, 2>>(args, stream);
  if (args.max_rows <= 64) return launch_queries<HeadShape<2, 4, 4>>(args, stream);
  if (args.max_rows <= 128) return launch_queries<HeadShape<2, 4, 4, 2>>(args, stream);
  return launch_queries<HeadShape<2, 4, 4, 4>>(args, stream);
}

}  // namespace

void launch_latent_q(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<LatentQArgs>(packed);
  if (launch_fused(args, stream)) return;
  const dim3 grid(args.max_rows, ceil_div(args.num_heads, kHeadsPerBlock));
  const auto kernel =
      args.dtype == DType::kBF16 ? latent_q_kernel<__nv_bfloat16> : latent_q_kernel<float>;
  launch_kernel(kernel, grid, kThreads, 0, stream, args);
  if (args.absorb == nullptr) return;
  const HeadGemmArgs product = absorbing_product(args);
  launch_head_gemm(&product, stream);
}

}  // namespace foretoken::cuda
