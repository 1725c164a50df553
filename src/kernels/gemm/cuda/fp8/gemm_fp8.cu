#include "kernels/gemm/cuda/fp8_weight.cuh"
#include "kernels/gemm/cuda/gemm_epilogue.cuh"

namespace foretoken::cuda {

// gemm_fp8_shapes.cuh.
template <bool ByUnit, class Epilogue>
void launch_fp8(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                cudaStream_t stream);

namespace {

template <class Epilogue>
void launch_scaled(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                   cudaStream_t stream) {
  if (matrix.kind == DequantKind::kFp8RowsBy128) {
    launch_fp8<true>(args, matrix, epilogue, stream);
  } else {
    launch_fp8<false>(args, matrix, epilogue, stream);
  }
}

// Each run of rows of one form makes its columns of y.
void launch_runs(const GemmArgs& args, const QuantizedMatrix& first, cudaStream_t stream) {
  StoreOutput epilogue{args.n};
  GemmArgs own = args;
  for (const QuantizedMatrix* run = &first; run != nullptr; run = run->next) {
    own.n = static_cast<int32_t>(run->rows);
    launch_scaled(own, *run, epilogue, stream);
    own.y = static_cast<uint8_t*>(own.y) + run->rows * int64_t(dtype_size(args.out_dtype));
    if (own.bias != nullptr) own.bias += run->rows;
  }
}

}  // namespace

void launch_gemm_fp8(const GemmArgs& args, const QuantizedMatrix& matrix, cudaStream_t stream) {
  if (matrix.next != nullptr) return launch_runs(args, matrix, stream);
  with_store(args, [&](const GemmArgs& all, auto& epilogue) {
    launch_scaled(all, matrix, epilogue, stream);
  });
}

}  // namespace foretoken::cuda
