#include "kernels/cuda/tensor_map.cuh"

#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include "kernels/cuda/weight_layout.cuh"

namespace foretoken::cuda {
namespace {

// Through the runtime, so that nothing links with the driver's library.
PFN_cuTensorMapEncodeTiled_v12000 find_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                              12000, cudaEnableDefault, &found);
  const bool ok = status == cudaSuccess && found == cudaDriverEntryPointSuccess;
  return ok ? reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function) : nullptr;
}

PFN_cuTensorMapEncodeTiled_v12000 encoder() {
  static const PFN_cuTensorMapEncodeTiled_v12000 encode = find_encoder();
  return encode;
}

}  // namespace

bool make_row_map(CUtensorMap& map, const void* data, int64_t rows, int64_t columns, int box_rows) {
  const auto encode = encoder();
  if (encode == nullptr) return false;
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(columns) * 2};
  const cuuint32_t box[2] = {kAtomK, static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[2] = {1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(data), sizes, strides,
                box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool make_row_map(CUtensorMap& map, const void* data, int64_t rows, int64_t columns, int box_rows,
                  int box_atoms) {
  const auto encode = encoder();
  if (encode == nullptr) return false;
  const cuuint64_t sizes[3] = {kAtomK, static_cast<cuuint64_t>(rows),
                               static_cast<cuuint64_t>(columns / kAtomK)};
  const cuuint64_t strides[2] = {static_cast<cuuint64_t>(columns) * 2, kAtomK * 2};
  const cuuint32_t box[3] = {kAtomK, static_cast<cuuint32_t>(box_rows),
                             static_cast<cuuint32_t>(box_atoms)};
  const cuuint32_t steps[3] = {1, 1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<void*>(data), sizes, strides,
                box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool make_output_map(CUtensorMap& map, void* data, DType dtype, int64_t rows, int64_t columns,
                     int box_rows) {
  const auto encode = encoder();
  if (encode == nullptr) return false;
  const bool floats = dtype == DType::kF32;
  const cuuint32_t bytes = floats ? 4 : 2;
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(columns) * bytes};
  const cuuint32_t box[2] = {128 / bytes, static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[2] = {1, 1};
  return encode(&map, floats ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                2, data, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool make_weight_map(CUtensorMap& map, const void* weight, int64_t n, int64_t k, int box_atoms,
                     int box_groups) {
  const auto encode = encoder();
  if (encode == nullptr) return false;
  constexpr cuuint32_t kWords = kAtomBytes / 8;  // an atom is one row of 8-byte elements
  const auto atoms = static_cast<cuuint64_t>(num_atoms(k));
  const cuuint64_t sizes[3] = {kWords, atoms, static_cast<cuuint64_t>(ceil_div(n, kGroupRows))};
  const cuuint64_t strides[2] = {kAtomBytes, atoms * kAtomBytes};
  const cuuint32_t box[3] = {kWords, static_cast<cuuint32_t>(box_atoms),
                             static_cast<cuuint32_t>(box_groups)};
  const cuuint32_t steps[3] = {1, 1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 3, const_cast<void*>(weight), sizes, strides,
                box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool make_unit_map(CUtensorMap& map, const void* weight, int unit_bytes, int units, int groups,
                   int box_groups) {
  const auto encode = encoder();
  if (encode == nullptr) return false;
  const auto words = static_cast<cuuint32_t>(unit_bytes / 8);  // a unit is one row of them
  const auto bytes = static_cast<cuuint64_t>(unit_bytes);
  const cuuint64_t sizes[3] = {words, static_cast<cuuint64_t>(units),
                               static_cast<cuuint64_t>(groups)};
  const cuuint64_t strides[2] = {bytes, static_cast<cuuint64_t>(units) * bytes};
  const cuuint32_t box[3] = {words, 1, static_cast<cuuint32_t>(box_groups)};
  const cuuint32_t steps[3] = {1, 1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 3, const_cast<void*>(weight), sizes, strides,
                box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool make_byte_map(CUtensorMap& map, const void* data, int row_bytes, int row_stride, int box_bytes,
                   int box_rows) {
  const auto encode = encoder();
  if (encode == nullptr) return false;
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(row_bytes), INT32_MAX};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(row_stride)};
  const cuuint32_t box[2] = {static_cast<cuuint32_t>(box_bytes), static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[2] = {1, 1};
  const auto swizzle = box_bytes == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE;
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<void*>(data), sizes, strides,
                box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool make_cache_map(CUtensorMap& map, const void* cache, int head_dim, int box_entries,
                    int box_columns) {
  return make_row_map(map, cache, INT32_MAX, head_dim, box_entries, box_columns);
}

}  // namespace foretoken::cuda
