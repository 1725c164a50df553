#include "kernels/gemm/pack_rows.h"

#include <algorithm>

#include "device/cuda/mapped_memory.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/gemm/cuda/dequant_weight.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 8192;

// Gates and ups come as the groups stand; only a last group that is not whole leaves places free.
__device__ int64_t place_of_row(int64_t row, int64_t n, WeightOrder order) {
  if (order == WeightOrder::kPlain) return row;
  const int64_t first = row / (2 * kGroupRows) * (2 * kGroupRows);
  const int64_t side = (n - first < 2 * kGroupRows ? n - first : 2 * kGroupRows) / 2;
  return row - first < side ? row : row + kGroupRows - side;
}

template <class T>
__global__ void pack_rows_kernel(PackRowsArgs args) {
  const auto* from = static_cast<const T*>(args.rows);
  auto* to = static_cast<T*>(args.weight);
  const int64_t step = int64_t{gridDim.x} * kThreads;
  const int64_t count = args.num_rows * args.k;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    int64_t row =
        row_in_packing_order(args.first_row + i / args.k, args.n, args.slice_rows, args.order);
    if (args.order == WeightOrder::kGateUp) row = gate_up_row(row, args.n);
    to[packed_index(row, i % args.k, args.k, args.dtype)] = from[i];
  }
}

}  // namespace

void* make_weight(int64_t n, int64_t k, DType dtype, WeightOrder order) {
  const int64_t elements = packed_elements(packed_rows(n, order), k, dtype);
  const size_t bytes = static_cast<size_t>(elements) * dtype_size(dtype);
  void* weight = nullptr;
  // Zeros up to whole tiles. Not the device: only the copy itself is waited for.
  if (take_device_memory(&weight, bytes) == cudaSuccess &&
      cudaMemset(weight, 0, bytes) == cudaSuccess &&
      cudaStreamSynchronize(nullptr) == cudaSuccess) {
    return weight;
  }
  free_device_memory(weight);
  cudaGetLastError();
  return nullptr;
}

// Any number would do; both sides of a slice are read in one piece each.
int64_t weight_slice_rows(int64_t, int64_t, DType, WeightOrder order) {
  return order == WeightOrder::kGateUp ? 128 : 1;
}

void launch_pack_rows(const void* packed, cudaStream_t stream) {
  PackRowsArgs args = op_args<PackRowsArgs>(packed);
  if (quantized_matrix(args.weight) != nullptr) return launch_pack_quantized(args, stream);
  const int64_t count = args.num_rows * args.k;
  if (args.scratch != nullptr) {
    cudaMemcpyAsync(args.scratch, args.rows, static_cast<size_t>(count) * dtype_size(args.dtype),
                    cudaMemcpyDefault, stream);
    args.rows = args.scratch;
  }
  const auto blocks = static_cast<int>(std::min((count + kThreads - 1) / kThreads, kMaxBlocks));
  if (args.dtype == DType::kBF16) {
    pack_rows_kernel<uint16_t><<<blocks, kThreads, 0, stream>>>(args);
  } else {
    pack_rows_kernel<float><<<blocks, kThreads, 0, stream>>>(args);
  }
}

}  // namespace foretoken::cuda
