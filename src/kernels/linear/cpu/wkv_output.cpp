#include "kernels/linear/wkv_output.h"

#include <cmath>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

template <class Out>
void write_wkv_head(const WkvOutputArgs& a, int64_t row, int head, Out* out) {
  const LinearShape& shape = a.shape;
  const int dim = shape.value_dim;
  const int64_t first = int64_t{head} * dim, at = row * shape.v_size() + first;
  const float* left = a.left + at;
  float sum = 0, squares = 0, bonus = 0;
  for (int i = 0; i < dim; ++i) sum += left[i];
  const float mean = sum / static_cast<float>(dim);
  for (int i = 0; i < dim; ++i) squares += (left[i] - mean) * (left[i] - mean);
  const float factor = 1.0f / std::sqrt(squares / static_cast<float>(dim) + a.eps);
  const float* q = a.packed + row * shape.row_size() + int64_t{head} * shape.key_dim;
  const float *k = q + shape.k_offset(), *own = a.bonus + int64_t{head} * shape.key_dim;
  for (int i = 0; i < shape.key_dim; ++i) bonus += q[i] * k[i] * own[i];
  const float* v = a.packed + row * shape.row_size() + shape.v_offset() + first;
  for (int i = 0; i < dim; ++i) {
    const float normed = (left[i] - mean) * factor * a.weights[first + i] + a.biases[first + i];
    store_one(out + first + i, (normed + bonus * v[i]) * a.gates[at + i]);
  }
}

template <class Out>
void write_wkv_rows(const WkvOutputArgs& a, int rows, CpuPool& pool) {
  for_each_row(pool, rows, 8 * int64_t{a.shape.v_size()}, [&](int64_t row) {
    Out* out = static_cast<Out*>(a.out) + row * a.shape.v_size();
    for (int head = 0; head < a.shape.value_heads; ++head) write_wkv_head(a, row, head, out);
  });
}

}  // namespace

void wkv_output(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const WkvOutputArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  a.dtype == DType::kF32 ? write_wkv_rows<float>(a, rows, pool)
                         : write_wkv_rows<uint16_t>(a, rows, pool);
}

}  // namespace foretoken::cpu
