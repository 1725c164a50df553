#include "kernels/experts/cuda/expert_launch.cuh"
#include "kernels/experts/cuda/expert_rings.cuh"
#include "kernels/gemm/cuda/dequant_codes.cuh"
#include "kernels/gemm/cuda/fp8_weight.cuh"

namespace foretoken::cuda {

// expert_fp8.cuh.
template <bool ByUnit>
bool launch_experts_fp8_of(const ExpertGemmArgs& args, const ExpertScales& scales,
                           cudaStream_t stream);

namespace {

// x is what round_rows made.
void launch_experts_fp8(const ExpertGemmArgs& args, const QuantizedMatrix& matrix,
                        cudaStream_t stream) {
  const int64_t rows = int64_t{args.max_rows} * (args.by_entry != 0 ? args.lists.top_k : 1);
  const bool by_unit = matrix.kind == DequantKind::kFp8RowsBy128;
  const ExpertScales scales{.of_rows = by_unit ? nullptr : matrix.row_scales,
                            .of_units = by_unit ? matrix.row_scales : nullptr,
                            .w_stride = static_cast<int>(fp8_scale_rows(matrix.rows)),
                            .of_x = rounded_scales(args.x, rows, args.k),
                            .x_stride = static_cast<int>(rounded_scale_rows(rows))};
  ExpertGemmArgs pairs = args;  // of codes, each an element
  pairs.weight = matrix.units;
  pairs.k = num_units(args.k) * kAtomK;
  by_unit ? launch_experts_fp8_of<true>(pairs, scales, stream)
          : launch_experts_fp8_of<false>(pairs, scales, stream);
}

}  // namespace

void launch_experts_quantized(const ExpertGemmArgs& args, const QuantizedMatrix& matrix,
                              cudaStream_t stream) {
  if (takes_rounded(matrix.kind)) return launch_experts_fp8(args, matrix, stream);
  ExpertGemmArgs own = args;
  own.weight = matrix.units;
  with_form(matrix.kind,
            [&]<class Form>() { return launch_experts_of<Form>(own, matrix.row_scales, stream); });
}

}  // namespace foretoken::cuda
