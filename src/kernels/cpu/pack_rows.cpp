#include "kernels/pack_rows.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "base/check.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/packed_weight.h"

namespace foretoken::cpu {

void pack_rows(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const PackRowsArgs*>(args);
  auto& weight = *static_cast<PackedWeight*>(a.weight);
  FT_CHECK(weight.n() == a.n && weight.k() == a.k && weight.dtype() == a.dtype);
  FT_CHECK(weight.order() == a.order && weight.cols(0) == std::min(a.slice_rows, a.n));
  const int64_t width = a.slice_rows;
  const int64_t row_bytes = a.k * static_cast<int64_t>(dtype_size(a.dtype));
  std::atomic<bool> failed = false;  // nothing may throw on the pool's threads
  pool.parallel_for((a.num_rows + width - 1) / width, [&](int64_t index, int) {
    try {
      weight.pack_slice(static_cast<int>(a.first_row / width + index),
                        static_cast<const std::byte*>(a.rows) + index * width * row_bytes);
    } catch (const std::exception&) {
      failed.store(true, std::memory_order_relaxed);
    }
  });
  if (failed) throw std::runtime_error("not enough host memory to pack a weight");
}

}  // namespace foretoken::cpu
