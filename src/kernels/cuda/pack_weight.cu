#include <algorithm>

#include "kernels/cuda/launchers.h"
#include "kernels/cuda/weight_layout.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kStagingBytes = int64_t{64} << 20;

// Where the rows of a part go: after first_row, or among those of the other part.
struct Places {
  int64_t first_row;
  WeightOrder order;
  int part;

  __device__ int64_t of(int64_t row) const {
    return order == WeightOrder::kStacked ? first_row + row : interleaved_row(part, row);
  }
};

// Moves rows row .. row + num_rows - 1 of a part from row-major `from` to their packed places.
template <class T>
__global__ void pack_kernel(T* to, const T* from, Places places, int64_t row, int64_t num_rows,
                            int64_t k, DType dtype) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < num_rows * k; i += step) {
    to[packed_index(places.of(row + i / k), i % k, k, dtype)] = from[i];
  }
}

bool pack_rows(void* packed, void* staging, const WeightPart& part, const Places& places, int64_t k,
               DType dtype) {
  const int64_t row_bytes = k * static_cast<int64_t>(dtype_size(dtype));
  const int64_t rows_at_once = std::max<int64_t>(1, kStagingBytes / row_bytes);
  for (int64_t row = 0; row < part.num_rows; row += rows_at_once) {
    const int64_t rows = std::min(rows_at_once, part.num_rows - row);
    const char* from = static_cast<const char*>(part.data) + row * row_bytes;
    if (cudaMemcpy(staging, from, rows * row_bytes, cudaMemcpyHostToDevice) != cudaSuccess) {
      return false;
    }
    const int blocks =
        static_cast<int>(std::min<int64_t>((rows * k + kThreads - 1) / kThreads, int64_t{8192}));
    if (dtype == DType::kBF16) {
      pack_kernel<<<blocks, kThreads>>>(static_cast<uint16_t*>(packed),
                                        static_cast<const uint16_t*>(staging), places, row, rows, k,
                                        dtype);
    } else {
      pack_kernel<<<blocks, kThreads>>>(static_cast<float*>(packed),
                                        static_cast<const float*>(staging), places, row, rows, k,
                                        dtype);
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
  if (order == WeightOrder::kInterleaved) {
    n = 2 * int64_t{kGroupRows} * ceil_div(largest, kGroupRows);
  }
  const int64_t element = static_cast<int64_t>(dtype_size(dtype));
  const int64_t bytes = packed_elements(n, k, dtype) * element;
  void* packed = nullptr;
  void* staging = nullptr;
  bool ok = cudaMalloc(&packed, bytes) == cudaSuccess &&
            cudaMalloc(&staging, std::min(std::max(kStagingBytes, k * element),
                                          largest * k * element)) == cudaSuccess &&
            cudaMemset(packed, 0, bytes) == cudaSuccess;
  Places places{0, order, 0};
  for (const WeightPart& part : parts) {
    ok = ok && pack_rows(packed, staging, part, places, k, dtype);
    places.first_row += part.num_rows;
    ++places.part;
  }
  ok = ok && cudaDeviceSynchronize() == cudaSuccess;
  cudaFree(staging);
  if (ok) return packed;
  cudaFree(packed);
  cudaGetLastError();
  return nullptr;
}

void* pack_weight(std::span<const WeightPart> parts, int64_t k, DType dtype) {
  return pack_weight(parts, k, dtype, WeightOrder::kStacked);
}

void free_weight(void* weight) { cudaFree(weight); }

}  // namespace foretoken::cuda
