#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "device/device.h"
#include "kernels/gemm/cuda/dequant_units.h"
#include "kernels/gemm/pack_rows.h"

// Weights that stay quantised. Their codes become bfloat16 in registers, on the way to the tensor
// cores: without loss, but for integers with scales of groups (dequant_ints.h).
namespace foretoken::cuda {

enum class DequantKind : uint8_t {
  kNone,
  kFp8,            // E4M3, a float for each row
  kFp8By128,       // E4M3, a float for each 128 k of a row
  kMxfp4,          // E2M1, a power of two for each 32 k of a row
  kNvfp4,          // E2M1, an E4M3 for each 16 k of a row, a float for each row
  kInt4By128,      // 4 bits minus 8, a half for each 128 k of a row
  kInt4By32,       // the same for each 32
  kInt4ZeroBy128,  // 4 bits minus a zero, both for each 128 k
  kInt4ZeroBy32,   // the same for each 32
  kInt8By32,       // 8 bits with a sign, a half for each 32 k of a row
  // Of GGUF, where a scale may be a half times a byte, and a minimum likewise.
  kInt2MinBy16,  // 2 bits times a scale less a minimum, both for each 16 k (Q2_K)
  kInt3By16,     // 3 bits minus 4, a scale for each 16 k (Q3_K)
  kInt4MinBy32,  // 4 bits times a scale less a minimum (Q4_K, Q4_1)
  kInt5By32,     // 5 bits minus 16 (Q5_0)
  kInt5MinBy32,  // 5 bits times a scale less a minimum (Q5_K, Q5_1)
  kInt6By16,     // 6 bits minus 32 (Q6_K)
  kIq4By32,      // 4 bits of a table (IQ4_NL, IQ4_XS)
  // For rows that are rounded, too (fp8_weight.cuh); no code is widened.
  kFp8Rows,       // E4M3, a float for each row
  kFp8RowsBy128,  // E4M3, a float for each 128 k of a row
};

// How the device keeps rows of that form; kNone: it does not.
DequantKind dequant_kind(const QuantForm& form);

// The handle of such a weight names this, which lies in host memory. Handles of other weights are
// their memory. Where parts of a weight differ in form, each run of equal ones is a matrix, but the
// last one of whole groups of 8 rows.
struct QuantizedMatrix {
  QuantForm form;
  DequantKind kind = DequantKind::kNone;
  int64_t rows = 0;
  int64_t k = 0;
  int64_t bytes = 0;                // of this one
  uint8_t* units = nullptr;         // device memory
  float* row_scales = nullptr;      // device memory, of whole groups of 8 rows; null: none
  QuantizedMatrix* next = nullptr;  // the rows behind these; null: none
};

// Null for a handle of another weight. Such a handle is odd; memory of a device never is.
inline const QuantizedMatrix* quantized_matrix(const void* handle) {
  const auto bits = reinterpret_cast<uintptr_t>(handle);
  return (bits & 1) == 0 ? nullptr : reinterpret_cast<const QuantizedMatrix*>(bits - 1);
}

void free_quantized_matrix(void* handle);
// Of a weight that is one.
void launch_pack_quantized(const PackRowsArgs& args, cudaStream_t stream);

}  // namespace foretoken::cuda
