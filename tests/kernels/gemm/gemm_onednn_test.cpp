#include "kernels/gemm/cpu/gemm_onednn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "device/cpu/page_block.h"
#include "support/random_data.h"

namespace foretoken::cpu {
namespace {

TEST(GemmOnednn, EveryBucketHasTheSameBits) {
  if (!onednn_is_batch_invariant(DType::kF32)) GTEST_SKIP() << "this CPU runs the plain kernels";
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    if (!onednn_is_batch_invariant(dtype)) continue;
    for (const auto& [cols, k] :
         {std::pair{64, 192}, std::pair{96, 576}, std::pair{1, 1024}, std::pair{1000, 100}}) {
      const size_t n = static_cast<size_t>(cols);
      const TypedData w = typed_data(random_floats(n * static_cast<size_t>(k), 1), dtype);
      const TypedData x =
          typed_data(random_floats(static_cast<size_t>(kMaxTileRows * k), 2), dtype);
      const PageBlock memory(onednn_slice_bytes(cols, k, dtype));
      const auto slice = pack_onednn_slice(w.data(), cols, k, dtype, memory.data());
      std::vector<float> all(kMaxTileRows * n), some(kMaxTileRows * n);
      slice->multiply(x.data(), all.data(), kMaxTileRows);
      for (int rows = 1; rows < kMaxTileRows; rows *= 2) {
        slice->multiply(x.data(), some.data(), rows);
        const size_t bytes = static_cast<size_t>(rows) * n * sizeof(float);
        EXPECT_EQ(std::memcmp(some.data(), all.data(), bytes), 0)
            << dtype_name(dtype) << " cols " << cols << " k " << k << " rows " << rows;
      }
      double want = 0;
      for (int i = 0; i < k; ++i) want += double(w.values[i]) * x.values[i];
      EXPECT_NEAR(all[0], want, 1e-3 * std::sqrt(k));
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu
