#include <algorithm>

#include "device/cuda/mapped_memory.h"
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/gemm/cuda/dequant_weight.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kStagingBytes = int64_t{64} << 20;

// The matrix [n, k] that is packed.
struct Matrix {
  int64_t n;
  int64_t k;
  DType dtype;
  WeightOrder order;
};

// Moves rows first_row .. first_row + num_rows - 1 from row-major `from` to their packed places.
template <class T>
__global__ void pack_kernel(T* to, const T* from, int64_t first_row, int64_t num_rows,
                            Matrix matrix) {
  const int64_t k = matrix.k;
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < num_rows * k; i += step) {
    int64_t row = first_row + i / k;
    if (matrix.order == WeightOrder::kGateUp) row = gate_up_row(row, matrix.n);
    to[packed_index(row, i % k, k, matrix.dtype)] = from[i];
  }
}

bool pack_rows(void* packed, void* staging, const WeightPart& part, int64_t first_row,
               const Matrix& matrix) {
  const int64_t k = matrix.k;
  const int64_t row_bytes = k * static_cast<int64_t>(dtype_size(matrix.dtype));
  const int64_t rows_at_once = std::max<int64_t>(1, kStagingBytes / row_bytes);
  for (int64_t row = 0; row < part.num_rows; row += rows_at_once) {
    const int64_t rows = std::min(rows_at_once, part.num_rows - row);
    const char* from = static_cast<const char*>(part.data) + row * row_bytes;
    if (cudaMemcpy(staging, from, rows * row_bytes, cudaMemcpyHostToDevice) != cudaSuccess) {
      return false;
    }
    const int blocks =
        static_cast<int>(std::min<int64_t>((rows * k + kThreads - 1) / kThreads, int64_t{8192}));
    if (matrix.dtype == DType::kBF16) {
      pack_kernel<<<blocks, kThreads>>>(static_cast<uint16_t*>(packed),
                                        static_cast<const uint16_t*>(staging), first_row + row,
                                        rows, matrix);
    } else {
      pack_kernel<<<blocks, kThreads>>>(static_cast<float*>(packed),
                                        static_cast<const float*>(staging), first_row + row, rows,
                                        matrix);
    }
    if (cudaGetLastError() != cudaSuccess) return false;
  }
  return true;
}

}  // namespace

void* pack_weight(std::span<const WeightPart> parts, int64_t k, DType dtype, WeightOrder order) {
  int64_t n = 0;
  int64_t largest = 0;
  for (const WeightPart& part : parts) {
    n += part.num_rows;
    largest = std::max(largest, part.num_rows);
  }
  const int64_t element = static_cast<int64_t>(dtype_size(dtype));
  const int64_t bytes = packed_elements(packed_rows(n, order), k, dtype) * element;
  void* packed = nullptr;
  void* staging = nullptr;
  bool ok = take_device_memory(&packed, bytes) == cudaSuccess &&
            cudaMalloc(&staging, std::min(std::max(kStagingBytes, k * element),
                                          largest * k * element)) == cudaSuccess &&
            cudaMemset(packed, 0, bytes) == cudaSuccess;
  int64_t row = 0;
  for (const WeightPart& part : parts) {
    ok = ok && pack_rows(packed, staging, part, row, {n, k, dtype, order});
    row += part.num_rows;
  }
  ok = ok && cudaDeviceSynchronize() == cudaSuccess;
  cudaFree(staging);
  if (ok) return packed;
  free_device_memory(packed);
  cudaGetLastError();
  return nullptr;
}

void free_weight(void* weight) {
  if (quantized_matrix(weight) != nullptr) return free_quantized_matrix(weight);
  free_device_memory(weight);
}

}  // namespace foretoken::cuda
