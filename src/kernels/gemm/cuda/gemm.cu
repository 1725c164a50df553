#include "kernels/gemm/gemm.h"

#include "kernels/cuda/launchers.h"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/gemm/cuda/fp8_weight.cuh"
#include "kernels/gemm/cuda/gemm_common.cuh"
#include "kernels/gemm/cuda/gemm_dequant.cuh"

namespace foretoken::cuda {
namespace {

void launch_of_floats(const GemmArgs& args, cudaStream_t stream) {
  if (args.dtype == DType::kF32) {
    launch_gemm_float(args, stream);
  } else if (uses_skinny(args)) {
    if (!streams_few(args) || !launch_gemm_stream(args, stream)) launch_gemm_skinny(args, stream);
  } else if (args.max_rows <= kFewRows ? !launch_gemm_stream(args, stream)
                                       : !launch_gemm_wide(args, stream)) {
    launch_gemm_tiled(args, stream);
  }
}

}  // namespace

void launch_gemm(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<GemmArgs>(packed);
  if (args.gated == GemmArgs::kRawGates) {
    GemmArgs plain = args;
    plain.n = static_cast<int32_t>(packed_rows(args.n, WeightOrder::kGateUp));
    plain.gated = 0;
    return launch_gemm(&plain, stream);
  }
  const QuantizedMatrix* matrix = quantized_matrix(args.weight);
  if (matrix == nullptr) return launch_of_floats(args, stream);
  if (takes_rounded(matrix->kind)) return launch_gemm_fp8(args, *matrix, stream);
  launch_gemm_dequant(args, *matrix, stream);
  if (args.frees_next != 0) launch_all_ended(stream);
}

}  // namespace foretoken::cuda
