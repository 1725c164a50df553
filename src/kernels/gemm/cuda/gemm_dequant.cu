#include "kernels/gemm/cuda/gemm_dequant.cuh"

#include "kernels/gemm/cuda/dequant_codes.cuh"

namespace foretoken::cuda {

void launch_gemm_dequant(const GemmArgs& args, const QuantizedMatrix& matrix, cudaStream_t stream) {
  with_store(args, [&](const GemmArgs& all, auto& epilogue) {
    with_form(matrix.kind,
              [&]<class Form>() { launch_dequant<Form>(all, matrix, epilogue, stream); });
  });
}

void launch_gemm_dequant(const GemmArgs& args, const QuantizedMatrix& matrix, KeepBest& best,
                         cudaStream_t stream) {
  with_form(matrix.kind, [&]<class Form>() { launch_dequant<Form>(args, matrix, best, stream); });
}

}  // namespace foretoken::cuda
