#include "kernels/gemm/cuda/gemm_dequant.cuh"

#include "kernels/gemm/cuda/dequant_codes.cuh"

namespace foretoken::cuda {

namespace {

// Each run of rows of one form makes its columns of y.
void launch_runs(const GemmArgs& args, const QuantizedMatrix& first, cudaStream_t stream) {
  StoreOutput epilogue{args.n};
  GemmArgs own = args;
  for (const QuantizedMatrix* run = &first; run != nullptr; run = run->next) {
    own.n = static_cast<int32_t>(run->rows);
    with_form(run->kind, [&]<class Form>() { launch_dequant<Form>(own, *run, epilogue, stream); });
    own.y = static_cast<uint8_t*>(own.y) + run->rows * int64_t(dtype_size(args.out_dtype));
    if (own.bias != nullptr) own.bias += run->rows;
  }
}

}  // namespace

void launch_gemm_dequant(const GemmArgs& args, const QuantizedMatrix& matrix, cudaStream_t stream) {
  if (matrix.next != nullptr) return launch_runs(args, matrix, stream);
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
