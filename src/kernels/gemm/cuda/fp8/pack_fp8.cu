#include <algorithm>

#include "kernels/cuda/weight_layout.cuh"
#include "kernels/gemm/cuda/fp8_weight.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kPackThreads = 256;
constexpr int64_t kMaxPackBlocks = 8192;
constexpr int kChunk = 16;  // codes

// A thread moves a chunk; that of a unit's first also its scale, where it has one of its own, and
// that of a row's first the row's. Rows lie at any byte.
__global__ void pack_fp8_kernel(PackRowsArgs args, const uint8_t* rows, int64_t row_bytes,
                                QuantizedMatrix matrix) {
  const bool by_unit = matrix.kind == DequantKind::kFp8RowsBy128;
  const int units = num_units(args.k);
  const int row_chunks = units * (kUnitK / kChunk);
  const int64_t step = int64_t{gridDim.x} * kPackThreads;
  const int64_t count = args.num_rows * row_chunks;
  for (int64_t i = int64_t{blockIdx.x} * kPackThreads + threadIdx.x; i < count; i += step) {
    const int64_t own = i / row_chunks;
    const auto chunk = static_cast<int>(i % row_chunks);
    int64_t row = row_in_packing_order(args.first_row + own, args.n, args.slice_rows, args.order);
    if (args.order == WeightOrder::kGateUp) row = gate_up_row(row, args.n);
    const uint8_t* from = rows + own * row_bytes;
    uint32_t words[kChunk / 4] = {};
    for (int j = 0; j < kChunk; ++j) {
      const int64_t column = int64_t{chunk} * kChunk + j;
      if (column < args.k) words[j / 4] |= uint32_t{from[column]} << (j % 4 * 8);
    }
    const int unit = chunk / (kUnitK / kChunk), place = chunk % (kUnitK / kChunk);
    const auto r = static_cast<int>(row % kGroupRows);
    auto* to = reinterpret_cast<uint4*>(matrix.units) +
               (row / kGroupRows * units + unit) * kAtomChunks + atom_chunk(r, place);
    *to = {words[0], words[1], words[2], words[3]};
    if (place != 0 || (!by_unit && unit != 0)) continue;
    float scale;
    memcpy(&scale, from + args.k + unit * sizeof scale, sizeof scale);
    matrix.row_scales[unit * fp8_scale_rows(matrix.rows) + row] = scale;
  }
}

}  // namespace

void launch_pack_fp8(const PackRowsArgs& args, const void* rows, const QuantizedMatrix& matrix,
                     cudaStream_t stream) {
  const int64_t chunks = args.num_rows * num_units(args.k) * (kUnitK / kChunk);
  const auto blocks =
      static_cast<int>(std::min<int64_t>(ceil_div(chunks, kPackThreads), kMaxPackBlocks));
  pack_fp8_kernel<<<blocks, kPackThreads, 0, stream>>>(
      args, static_cast<const uint8_t*>(rows), quantized_row_bytes(matrix.form, args.k), matrix);
}

}  // namespace foretoken::cuda
