#include "model/layer/attention/head_difference.h"

#include <cmath>
#include <vector>

#include "kernels/latent/head_gemm.h"
#include "kernels/rows/norm_columns.h"

namespace foretoken {
namespace {

// exp(q . k) of two learned vectors; 1 for random weights.
Result<double> exp_product(WeightLoader& weights, const std::string& base, const char* index,
                           int64_t size) {
  double sum = 0;
  std::vector<float> both[2];
  const std::string names[] = {base + "lambda_q" + index, base + "lambda_k" + index};
  for (size_t i = 0; i < 2; ++i) {
    FT_RETURN_IF_ERROR(weights.expect(names[i], {&size, 1}));
    if (!weights.has_optional(names[i])) return 1.0;
    FT_ASSIGN_OR_RETURN(both[i], weights.numbers(names[i]));
  }
  for (size_t i = 0; i < both[0].size(); ++i) sum += double(both[0][i]) * both[1][i];
  return std::exp(sum);
}

}  // namespace

Status HeadDifference::load(PartLoader& loader, const std::string& base, const GqaSpec& part) {
  if (part.num_heads % 2 != 0) {
    return unsupported(loader.config().architecture +
                       ": heads come in pairs, which so many ranks would divide; lower "
                       "--tensor-parallel-size");
  }
  pairs = part.num_heads / 2;
  size = part.head_dim;
  eps = loader.config().rms_norm_eps;
  WeightLoader& weights = loader.weights();
  const int64_t of_vectors = size / 2;
  FT_ASSIGN_OR_RETURN(const double first, exp_product(weights, base, "1", of_vectors));
  FT_ASSIGN_OR_RETURN(const double second, exp_product(weights, base, "2", of_vectors));
  const auto lambda = static_cast<float>(first - second + double(part.lambda_init));
  const auto n = static_cast<size_t>(size);
  std::vector<float> values(n * 2 * n);
  for (size_t i = 0; i < n; ++i) {
    values[i * 2 * n + i] = 1;
    values[i * 2 * n + n + i] = -lambda;
  }
  FT_ASSIGN_OR_RETURN(matrix, weights.repeated(std::move(values), 2 * int64_t{size}, pairs));
  const std::vector<float> factors(static_cast<size_t>(pairs) * n, 1 - part.lambda_init);
  return loader.upload(factors, "the factors of attention heads", &norm);
}

// By way of floats, as norms of columns are taken in place.
void HeadDifference::take(const LayerRows& rows, DType dtype, void* attended,
                          const Scratch& scratch) const {
  const int32_t width = pairs * size;
  head_gemm(rows.queue, {.counts = rows.counts,
                         .x = attended,
                         .weight = matrix.get(),
                         .y = scratch.differences,
                         .max_rows = rows.max_rows,
                         .num_heads = pairs,
                         .n = size,
                         .k = 2 * size,
                         .x_stride = 2 * size,
                         .y_stride = size,
                         .dtype = dtype});
  cast_rows(rows, {scratch.differences, dtype, scratch.normed, DType::kF32, width});
  norm_columns(rows.queue, {.counts = rows.counts,
                            .x = scratch.normed,
                            .weight = norm,
                            .max_rows = rows.max_rows,
                            .stride = width,
                            .column = 0,
                            .groups = pairs,
                            .size = size,
                            .eps = eps});
  cast_rows(rows, {scratch.normed, DType::kF32, attended, dtype, width});
}

double HeadDifference::num_weights(const GqaSpec& spec) {
  return double(spec.num_heads) * spec.head_dim * spec.head_dim;
}

}  // namespace foretoken
