#include "kernels/latent/head_gemm.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/latent/cuda/head_product.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * 32;
constexpr int kTileColumns = kWarps * kTileN;  // of y, of one head
constexpr int kTileGroups = kTileColumns / kGroupRows;
constexpr int kPlainRows = 8;
constexpr int kWholeRows = 256;    // up to which shared memory
constexpr int kWholeK = 512;       // holds matrices of so many columns whole
constexpr int kLongRows = 16;      // up to which matrices of more columns have kLongStages atoms
constexpr int kLongStages = 8;     // of k on their way
constexpr int kWideColumns = 256;  // from which on tiles are wide

// Where a block works: kTileColumns columns of a head from `column` on, and rows from `row` on.
struct HeadTile {
  int head;
  int column;
  int row;
  int live;
};

// The operands of a block along k, an atom a stage. Beyond k, the head's columns and the live rows
// they are zero.
template <int Rows, int Stages>
struct HeadRing {
  static constexpr int kWeightChunks = kTileGroups * kAtomChunks;
  static constexpr int kRowChunks = kAtomK / 8;  // of a row of x
  static constexpr int kStageChunks = kWeightChunks + Rows * kRowChunks;

  const HeadGemmArgs& args;
  uint4* chunks;  // [Stages, kStageChunks]

  __device__ uint4* weight_of(int stage) const { return chunks + stage % Stages * kStageChunks; }
  __device__ uint4* x_of(int stage) const { return weight_of(stage) + kWeightChunks; }
  // Eight rows use different banks.
  __device__ static int x_chunk(int row, int c) { return row * kRowChunks + (c ^ (row & 7)); }

  __device__ void load_weight(const HeadTile& tile, int stage) const {
    const int atoms = num_atoms(args.k);
    const int first = (tile.head * args.n + tile.column) / kGroupRows;
    const auto* weight = static_cast<const uint4*>(args.weight);
    for (int i = threadIdx.x; i < kWeightChunks; i += kThreads) {
      const int group = i / kAtomChunks;
      const bool valid = stage < atoms && tile.column + group * kGroupRows < args.n;
      const int64_t atom = valid ? int64_t{first + group} * atoms + stage : 0;
      copy16_async(weight_of(stage) + i, weight + atom * kAtomChunks + i % kAtomChunks, valid);
    }
  }

  __device__ void load_x(const HeadTile& tile, int stage) const {
    const auto* x = static_cast<const __nv_bfloat16*>(args.x);
    for (int i = threadIdx.x; i < Rows * kRowChunks; i += kThreads) {
      const int row = i / kRowChunks;
      const int k = stage * kAtomK + i % kRowChunks * 8;
      const bool valid = k < args.k && tile.row + row < tile.live;
      const int64_t from =
          (int64_t{tile.row + row} * args.num_heads + tile.head) * args.x_stride + k;
      copy16_async(x_of(stage) + x_chunk(row, i % kRowChunks), x + (valid ? from : 0), valid);
    }
  }
};

// One product of 16 columns after the other along k.
template <int Rows, int Stages>
__device__ void multiply_stage(const HeadRing<Rows, Stages>& ring, int stage,
                               float (&c)[Rows / 8][4]) {
  const int lane = threadIdx.x % 32;
  const uint4* weight = ring.weight_of(stage) + threadIdx.x / 32 * 2 * kAtomChunks;
  const uint4* x = ring.x_of(stage);
  const int matrix = lane / 8;
#pragma unroll
  for (int step = 0; step < kAtomK / 16; ++step) {
    uint32_t a[4];
    load_matrices(a, shared_address(weight + matrix % 2 * kAtomChunks +
                                    atom_chunk(lane % 8, step * 2 + matrix / 2)));
#pragma unroll
    for (int j = 0; j < Rows / 8; j += 2) {
      uint32_t b[4];
      const int row = j * 8 + lane / 16 * 8 + lane % 8;
      load_matrices(
          b, shared_address(x + HeadRing<Rows, Stages>::x_chunk(row, step * 2 + matrix % 2)));
      mma_bf16(c[j], a[0], a[1], a[2], a[3], b[0], b[1]);
      mma_bf16(c[j + 1], a[0], a[1], a[2], a[3], b[2], b[3]);
    }
  }
}

template <int Rows>
__device__ void store_products(const HeadGemmArgs& args, const HeadTile& tile,
                               const float (&c)[Rows / 8][4]) {
  const int lane = threadIdx.x % 32;
  auto* y = static_cast<__nv_bfloat16*>(args.y);
#pragma unroll
  for (int j = 0; j < Rows / 8; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = tile.row + j * 8 + lane % 4 * 2 + i % 2;
      const int column = tile.column + threadIdx.x / 32 * kTileN + lane / 4 + i / 2 * 8;
      if (row >= tile.live || column >= args.n) continue;
      const int64_t head = int64_t{row} * args.num_heads + tile.head;
      y[head * args.y_stride + column] = __float2bfloat16_rn(c[j][i]);
    }
  }
}

// Block (tile of columns, head, tile of rows).
template <int Rows, int Stages>
__global__ void __launch_bounds__(kThreads) head_gemm_kernel(HeadGemmArgs args) {
  using Ring = HeadRing<Rows, Stages>;
  extern __shared__ __align__(128) uint4 ring_chunks[];
  const Ring ring{args, ring_chunks};
  HeadTile tile{static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.x) * kTileColumns,
                static_cast<int>(blockIdx.z) * Rows, 0};
  // The weight is constant: its first part is fetched while the op before still runs.
  for (int stage = 0; stage < Stages - 1; ++stage) ring.load_weight(tile, stage);
  wait_for_previous();
  let_next_start();
  tile.live = min(args.counts->num_rows, args.max_rows);
  if (tile.row >= tile.live) {
    wait_copies<0>();
    return;
  }
  for (int stage = 0; stage < Stages - 1; ++stage) {
    ring.load_x(tile, stage);
    commit_copies();
  }
  float c[Rows / 8][4] = {};
  const int num_stages = num_atoms(args.k);
  for (int stage = 0; stage < num_stages; ++stage) {
    wait_copies<Stages - 2>();
    __syncthreads();
    ring.load_weight(tile, stage + Stages - 1);
    ring.load_x(tile, stage + Stages - 1);
    commit_copies();
    multiply_stage(ring, stage, c);
  }
  wait_copies<0>();
  store_products<Rows>(args, tile, c);
}

// Few rows, with all of both operands in shared memory, the second half of which arrives while the
// first is multiplied. Block (tile of columns, head, tile of rows). Rows of x up to max_rows are
// readable, so that their copies need not wait for the live count.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads) head_gemm_few_kernel(HeadGemmArgs args) {
  extern __shared__ uint4 few_operands[];
  const HeadOperands<Shape> operands(few_operands, args.k);
  const int head = blockIdx.y;
  const int column = static_cast<int>(blockIdx.x) * Shape::kRowsW;
  const int first_row = static_cast<int>(blockIdx.z) * Shape::kRowsX;
  const int half = (operands.atoms + 1) / 2;
  operands.load_weight(args.weight, (int64_t{head} * args.n + column) / kGroupRows,
                       (args.n - column) / kGroupRows, 0, operands.atoms);
  wait_for_previous();
  const int live = min(args.counts->num_rows, args.max_rows);
  if (first_row > 0 && first_row >= live) {
    wait_copies<0>();
    return;
  }
  const int rows = min(Shape::kRowsX, args.max_rows - first_row);
  const auto* x = static_cast<const __nv_bfloat16*>(args.x) +
                  (int64_t{first_row} * args.num_heads + head) * args.x_stride;
  const int64_t x_row = int64_t{args.num_heads} * args.x_stride;
  const auto load_x = [&](int first, int end) {
    const int width = (end - first) * 8;  // chunks of a row
    for (int i = threadIdx.x; i < rows * width; i += Shape::kThreads) {
      const int row = i / width;
      const int chunk = first * 8 + i % width;
      const bool valid = chunk * 8 < args.k;
      copy16_async(operands.x_place(row, chunk), x + (valid ? row * x_row + chunk * 8 : 0), valid);
    }
    commit_copies();
  };
  load_x(0, half);
  load_x(half, operands.atoms);
  HeadSums<Shape> c = {};
  const bool multiplies = threadIdx.x / 32 < Shape::kWarps;
  wait_copies<1>();
  __syncthreads();
  if (multiplies) operands.multiply(c, 0, half);
  wait_copies<0>();
  __syncthreads();
  if (multiplies && half < operands.atoms) operands.multiply(c, half, operands.atoms);
  const int64_t y_row = int64_t{args.num_heads} * args.y_stride;
  auto* y = static_cast<__nv_bfloat16*>(args.y) + first_row * y_row +
            int64_t{head} * args.y_stride + column;
  store_head_tile<Shape>(few_operands, {y, y_row, live - first_row, args.n - column}, c);
}

// A lane computes a column for kPlainRows rows, one fused multiply-add after the other along k.
template <class T>
__global__ void __launch_bounds__(kThreads) head_gemm_plain_kernel(HeadGemmArgs args) {
  wait_for_previous();
  let_next_start();
  const int live = min(args.counts->num_rows, args.max_rows);
  const int first = blockIdx.y * kPlainRows;
  const int column = blockIdx.x * kThreads + threadIdx.x;
  if (first >= live || column >= args.num_heads * args.n) return;
  const int head = column / args.n;
  const auto* weight = static_cast<const T*>(args.weight);
  const T* x[kPlainRows];
  for (int r = 0; r < kPlainRows; ++r) {
    const int row = min(first + r, live - 1);
    x[r] = static_cast<const T*>(args.x) + (int64_t{row} * args.num_heads + head) * args.x_stride;
  }
  float sums[kPlainRows] = {};
  for (int k = 0; k < args.k; ++k) {
    const float w = to_float(weight[packed_index(column, k, args.k, args.dtype)]);
#pragma unroll
    for (int r = 0; r < kPlainRows; ++r) sums[r] = fmaf(to_float(x[r][k]), w, sums[r]);
  }
  for (int r = 0; r < kPlainRows && first + r < live; ++r) {
    const int64_t to = (int64_t{first + r} * args.num_heads + head) * args.y_stride;
    static_cast<T*>(args.y)[to + column % args.n] = from_float<T>(sums[r]);
  }
}

// False where the device has not so much shared memory; then nothing is launched.
template <int Rows, int Stages>
bool launch(const HeadGemmArgs& args, cudaStream_t stream) {
  constexpr int kBytes = Stages * HeadRing<Rows, Stages>::kStageChunks * int{sizeof(uint4)};
  const auto kernel = head_gemm_kernel<Rows, Stages>;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes) !=
      cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  const dim3 grid(ceil_div(args.n, kTileColumns), args.num_heads, ceil_div(args.max_rows, Rows));
  launch_kernel(kernel, grid, kThreads, kBytes, stream, args);
  return true;
}

template <class Shape>
bool launch_few(const HeadGemmArgs& args, cudaStream_t stream) {
  const dim3 grid(ceil_div(args.n, Shape::kRowsW), args.num_heads,
                  ceil_div(args.max_rows, Shape::kRowsX));
  return launch_head_tiles<Shape>(head_gemm_few_kernel<Shape>, grid, args.k, stream, args);
}

// Copies of 16 bytes need whole chunks of the rows.
bool has_chunks(const HeadGemmArgs& args) {
  return args.dtype == DType::kBF16 && args.k % 8 == 0 && args.x_stride % 8 == 0;
}

// Few rows of long matrices, of which more is on its way.
bool launch_long_for_few(const HeadGemmArgs& args, cudaStream_t stream) {
  return args.max_rows <= kLongRows && launch<kLongRows, kLongStages>(args, stream);
}

// A matrix of many columns in wide tiles, so that x is read less often; one of few in as many
// blocks as there are, each of which then reads little.
bool launch_for_few(const HeadGemmArgs& args, cudaStream_t stream) {
  if (args.max_rows > kWholeRows || args.k > kWholeK || args.y_stride % 8 != 0) return false;
  if (args.max_rows > kFewRows) return launch_few<HeadShape<2, 4, 4>>(args, stream);
  const bool wide = args.n > kWideColumns;
  if (args.max_rows > 16) {
    return wide ? launch_few<HeadShape<2, 4, 4>>(args, stream)
                : launch_few<HeadShape<4, 1, 2>>(args, stream);
  }
  return wide ? launch_few<HeadShape<1, 4, 2>>(args, stream)
              : launch_few<HeadShape<1, 1, 2, 1, 128>>(args, stream);
}

}  // namespace

void launch_head_gemm(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<HeadGemmArgs>(packed);
  if (has_chunks(args)) {
    if (launch_for_few(args, stream) || launch_long_for_few(args, stream)) return;
    launch<64, 3>(args, stream);
    return;
  }
  const dim3 grid(ceil_div(int64_t{args.num_heads} * args.n, kThreads),
                  ceil_div(args.max_rows, kPlainRows));
  const auto kernel = args.dtype == DType::kBF16 ? head_gemm_plain_kernel<__nv_bfloat16>
                                                 : head_gemm_plain_kernel<float>;
  launch_kernel(kernel, grid, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
