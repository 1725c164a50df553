#include "kernels/gemm/pack_rows.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <vector>

#include "base/check.h"
#include "kernels/cpu/op_table.h"
#include "kernels/gemm/cpu/packed_weight.h"

namespace foretoken::cpu {

void pack_rows(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const PackRowsArgs*>(args);
  auto& weight = *static_cast<PackedWeight*>(a.weight);
  FT_CHECK(weight.n() == a.n && weight.k() == a.k && weight.dtype() == a.dtype);
  FT_CHECK(weight.order() == a.order && weight.cols(0) == std::min(a.slice_rows, a.n));
  const int64_t width = a.slice_rows;
  const auto first = static_cast<int>(a.first_row / width);
  const auto count = static_cast<int>((a.num_rows + width - 1) / width);
  std::vector<int64_t> begins(static_cast<size_t>(count));
  for (int i = 1; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    begins[at] = begins[at - 1] + weight.slice_row_bytes(first + i - 1);
  }
  std::atomic<bool> failed = false;  // nothing may throw on the pool's threads
  pool.parallel_for(count, [&](int64_t index, int) {
    try {
      weight.pack_slice(first + static_cast<int>(index),
                        static_cast<const std::byte*>(a.rows) + begins[static_cast<size_t>(index)]);
    } catch (const std::exception&) {
      failed.store(true, std::memory_order_relaxed);
    }
  });
  if (failed) throw std::runtime_error("not enough host memory to pack a weight");
}

}  // namespace foretoken::cpu
