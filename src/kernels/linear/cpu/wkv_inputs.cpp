#include "kernels/linear/wkv_inputs.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/linear/wkv_head.h"

namespace foretoken::cpu {

void wkv_inputs(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const WkvInputsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const int size = a.shape.v_size(), dim = a.shape.key_dim;
  for_each_row(pool, rows, 16 * int64_t{size}, [&](int64_t row) {
    float* out = a.out + row * a.shape.row_size();
    for (int first = 0; first < size; first += dim) {
      float squares = 0;
      for (int i = first; i < first + dim; ++i) {
        const float scaled = a.k[row * size + i] * a.key_scale[i];
        squares += scaled * scaled;
      }
      const float inverse = 1.0f / std::max(std::sqrt(squares), kWkvLeastLength);
      for (int i = first; i < first + dim; ++i) {
        write_wkv_input(a, row * size + i, i, inverse, out);
      }
    }
  });
}

}  // namespace foretoken::cpu
