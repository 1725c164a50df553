#include "kernels/experts/cuda/expert_launch.cuh"
#include "kernels/gemm/cuda/dequant_codes.cuh"

namespace foretoken::cuda {

void launch_experts_quantized(const ExpertGemmArgs& args, const QuantizedMatrix& matrix,
                              cudaStream_t stream) {
  ExpertGemmArgs own = args;
  own.weight = matrix.units;
  with_form(matrix.kind,
            [&]<class Form>() { return launch_experts_of<Form>(own, matrix.row_scales, stream); });
}

}  // namespace foretoken::cuda
