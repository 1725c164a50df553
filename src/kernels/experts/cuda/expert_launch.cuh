#pragma once
#include "kernels/cuda/common.cuh"
#include "kernels/experts/expert_gemm.h"
#include "kernels/gemm/cuda/dequant_weight.cuh"

namespace foretoken::cuda {

// Variants of the product of experts with Hopper's wgmma; each has the same bits for the same
// entry. False when the device or the arguments do not allow it.
bool launch_experts_streamed(const ExpertGemmArgs& args, cudaStream_t stream);  // with `shared`
bool launch_experts_tiled(const ExpertGemmArgs& args, cudaStream_t stream);     // without it

// Of weights that stay quantised, which `matrix` is the one of; without `shared`.
void launch_experts_quantized(const ExpertGemmArgs& args, const QuantizedMatrix& matrix,
                              cudaStream_t stream);
// The same for one form of them.
template <class Form>
bool launch_experts_of(const ExpertGemmArgs& args, const float* row_scales, cudaStream_t stream);

inline bool takes_wgmma(const ExpertGemmArgs& args) {
  return device_traits().wgmma && args.dtype == DType::kBF16;
}

// Entries of an expert in the mean, of the most that the step may have, rounded up.
inline int mean_entries(const ExpertGemmArgs& args) {
  return ceil_div(int64_t{args.max_rows} * args.lists.top_k, args.lists.all_experts());
}

// With more, products take as long as reading weights does, and want wide tiles.
inline constexpr int kMaxStreamedMean = 48;

inline bool streams_experts(const ExpertGemmArgs& args) {
  constexpr int kFewRows = 64;
  return takes_wgmma(args) && (args.max_rows <= kFewRows || mean_entries(args) <= kMaxStreamedMean);
}
// With more rows a product by itself, whose blocks have wider shares, is as fast.
inline constexpr int kMaxRowsBeside = 8;
inline bool streams_shared(const ExpertGemmArgs& args) {
  return streams_experts(args) && args.max_rows <= kMaxRowsBeside && args.shared.n % 16 == 0 &&
         quantized_matrix(args.shared.weight) == nullptr &&
         quantized_matrix(args.weight) == nullptr && args.shared.k % 8 == 0;
}

}  // namespace foretoken::cuda
