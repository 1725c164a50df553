#pragma once
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/gemm/cuda/gemm_common.cuh"

// Products of rows with the matrix of their head, whose k (a head's dimension, a latent's rank) is
// so small that a block keeps both operands in shared memory whole: the weight is there before the
// op before has ended, and nothing is waited for between the products. A product is the chain of
// the ring in head_gemm.cu and of gemm: mma.sync over ascending k, zeros behind k.
namespace foretoken::cuda {

// A block computes WarpsX x TilesX x 8 rows of x times WarpsW x TilesW x 16 rows of a head's
// matrix. It may have more threads than the warps that multiply, to bring operands.
template <int WarpsX_, int WarpsW_, int TilesX_, int TilesW_ = 1, int Threads_ = 0>
struct HeadShape {
  static constexpr int kWarpsX = WarpsX_;
  static constexpr int kTilesX = TilesX_;  // of a warp
  static constexpr int kTilesW = TilesW_;
  static constexpr int kWarps = WarpsX_ * WarpsW_;  // that multiply
  static constexpr int kRowsX = kWarpsX * kTilesX * 8;
  static constexpr int kRowsW = WarpsW_ * kTilesW * kTileN;
  static constexpr int kThreads = Threads_ > 0 ? Threads_ : kWarps * 32;
  static constexpr int kGroups = kRowsW / kGroupRows;
  static constexpr int kPitch = kRowsW + 8;  // of a row of products in shared memory, in elements
  // Fragments are read so many steps of 16 k ahead.
  static constexpr int kAhead = kTilesX * kTilesW <= 8 ? 2 : 1;
  static_assert(kTilesX % 2 == 0 && kThreads >= kWarps * 32);
  // Products take the place of the operands: at least one atom of them.
  static_assert(kRowsX * kPitch * 2 <= kGroups * kAtomBytes + kRowsX * kAtomK * 2);

  static int bytes(int k) { return num_atoms(k) * (kGroups * kAtomBytes + kRowsX * kAtomK * 2); }
};

template <class Shape>
using HeadSums = float[Shape::kTilesW][Shape::kTilesX][4];

// What a warp multiplies in a step of 16 k.
template <class Shape>
struct HeadFragments {
  uint32_t w[Shape::kTilesW][4];
  uint32_t x[Shape::kTilesX / 2][4];

  __device__ void multiply(HeadSums<Shape>& c) const {
#pragma unroll
    for (int i = 0; i < Shape::kTilesW; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::kTilesX / 2; ++j) {
        multiply_step(c[i][2 * j], w[i], x[j][0], x[j][1]);
        multiply_step(c[i][2 * j + 1], w[i], x[j][2], x[j][3]);
      }
    }
  }
};

template <class Shape>
struct HeadOperands {
  static constexpr int kStepsOfAtom = kAtomK / 16;

  uint4* weight;  // [kGroups][atoms][kAtomChunks]
  uint4* x;       // [atoms][kRowsX][8], chunks of eight rows in different banks
  int atoms;

  __device__ HeadOperands(uint4* shared, int k)
      : weight(shared),
        x(shared + Shape::kGroups * num_atoms(k) * kAtomChunks),
        atoms(num_atoms(k)) {}

  // Atoms [first, end) along k of the head's matrix from a group of 8 rows on, of which so many
  // follow.
  __device__ void load_weight(const void* matrix, int64_t group, int groups, int first,
                              int end) const {
    const int chunks = atoms * kAtomChunks;
    const uint4* from = static_cast<const uint4*>(matrix) + group * chunks;
    for (int g = 0; g < Shape::kGroups; ++g) {
      const bool valid = g < groups;
      for (int i = first * kAtomChunks + static_cast<int>(threadIdx.x); i < end * kAtomChunks;
           i += Shape::kThreads) {
        copy16_async(weight + g * chunks + i, from + (valid ? g * chunks + i : 0), valid);
      }
    }
  }

  __device__ uint4* x_place(int row, int chunk) const {
    return x + (chunk / 8 * Shape::kRowsX + row) * 8 + (chunk % 8 ^ (row & 7));
  }

  __device__ void read(HeadFragments<Shape>& to, int step) const {
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int group = warp / Shape::kWarpsX * Shape::kTilesW * 2;
    const uint4* w = weight + (group * atoms + step / kStepsOfAtom) * kAtomChunks;
    const int row = warp % Shape::kWarpsX * Shape::kTilesX * 8 + lane / 16 * 8 + lane % 8;
#pragma unroll
    for (int i = 0; i < Shape::kTilesW; ++i) {
      load_weight_step(to.w[i], w + i * 2 * atoms * kAtomChunks, atoms * kAtomChunks,
                       step % kStepsOfAtom);
    }
#pragma unroll
    for (int j = 0; j < Shape::kTilesX / 2; ++j) {
      load_matrices(to.x[j], shared_address(x_place(row + j * 16, step * 2 + lane / 8 % 2)));
    }
  }

  // Atoms [first, end), of which there is one at least; by the warps that multiply.
  __device__ void multiply(HeadSums<Shape>& c, int first, int end) const {
    const int last = end * kStepsOfAtom;
    HeadFragments<Shape> ring[Shape::kAhead + 1];
#pragma unroll
    for (int i = 0; i < Shape::kAhead; ++i) read(ring[i], first * kStepsOfAtom + i);
    for (int step = first * kStepsOfAtom; step < last; step += Shape::kAhead + 1) {
#pragma unroll
      for (int i = 0; i <= Shape::kAhead; ++i) {
        if (step + i >= last) break;
        const int next = step + i + Shape::kAhead;
        if (next < last) read(ring[(i + Shape::kAhead) % (Shape::kAhead + 1)], next);
        ring[i].multiply(c);
      }
    }
  }
};

// Where a tile's products go: y[row, column] lies at y + row * row_stride + column.
struct HeadOutput {
  __nv_bfloat16* y;  // of the tile's first row and column, on 16 bytes
  int64_t row_stride;
  int rows;     // live ones from the first on
  int columns;  // of the head from the first on, a multiple of 16
};

// Every thread of the block; `shared` is that of the operands, which are read no more.
template <class Shape>
__device__ void store_head_tile(uint4* shared, const HeadOutput& out, const HeadSums<Shape>& c) {
  auto* products = reinterpret_cast<__nv_bfloat16*>(shared);
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int first_row = warp % Shape::kWarpsX * Shape::kTilesX * 8 + lane % 4 * 2;
  const int first_column = warp / Shape::kWarpsX * Shape::kTilesW * kTileN + lane / 4;
  __syncthreads();
  if (warp < Shape::kWarps) {
#pragma unroll
    for (int w = 0; w < Shape::kTilesW; ++w) {
#pragma unroll
      for (int j = 0; j < Shape::kTilesX; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int row = first_row + j * 8 + i % 2;
          products[row * Shape::kPitch + first_column + w * kTileN + i / 2 * 8] =
              __float2bfloat16_rn(c[w][j][i]);
        }
      }
    }
  }
  __syncthreads();
  constexpr int kChunks = Shape::kRowsW / 8;  // of a row
  for (int i = threadIdx.x; i < Shape::kRowsX * kChunks; i += Shape::kThreads) {
    const int row = i / kChunks;
    const int column = i % kChunks * 8;
    if (row >= out.rows || column >= out.columns) continue;
    *reinterpret_cast<uint4*>(out.y + row * out.row_stride + column) =
        *reinterpret_cast<const uint4*>(products + row * Shape::kPitch + column);
  }
}

// Launches a kernel of such a shape for a matrix of k columns; false: the device cannot.
template <class Shape, class Args>
bool launch_head_tiles(void (*kernel)(Args), dim3 grid, int k, cudaStream_t stream,
                       const Args& args) {
  const int bytes = Shape::bytes(k);
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) !=
      cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  launch_kernel(kernel, grid, Shape::kThreads, bytes, stream, args);
  return true;
}

}  // namespace foretoken::cuda
