#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/dtype.h"

namespace foretoken::cpu {

// Rows of x that one call takes at most, and the most columns of y.
inline constexpr int kMaxTileRows = 64;
inline constexpr int kMaxSliceCols = 1024;

// Some columns of a weight matrix in oneDNN's packed layout. Immutable; used by many threads.
class OnednnSlice {
 public:
  virtual ~OnednnSlice() = default;
  // y[rows, cols] = x[rows, k] * weight^T in float, rows one of 1, 2, 4, ..., 64; y is dense. Keeps
  // scratch memory for the calling thread, made on its first call.
  virtual void multiply(const void* x, float* y, int rows) const = 0;
};

// Whether oneDNN has kernels here whose bits do not depend on the number of rows: its brgemm on
// AVX-512, for bfloat16 only where the processor has it. Its AVX2 kernels were seen to differ
// between row counts.
bool onednn_is_batch_invariant(DType dtype);

// Bytes of a packed slice, a multiple of 64. Throws std::exception.
size_t onednn_slice_bytes(int cols, int64_t k, DType dtype);

// Packs rows [cols, k] of `dtype` (row-major, output columns of y) into `memory`, which begins at a
// multiple of 64 and outlives the slice. Throws std::exception.
std::unique_ptr<OnednnSlice> pack_onednn_slice(const void* rows, int cols, int64_t k, DType dtype,
                                               std::byte* memory);

}  // namespace foretoken::cpu
