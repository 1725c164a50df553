#include "kernels/rows/fill_random.h"

#include <algorithm>

#include "base/bfloat16.h"
#include "kernels/cpu/op_table.h"
#include "kernels/random_weight.h"

namespace foretoken::cpu {
namespace {

constexpr int64_t kGrain = 16384;

}  // namespace

void fill_random(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const FillRandomArgs*>(args);
  pool.parallel_for((a.count + kGrain - 1) / kGrain, [&](int64_t index, int) {
    const int64_t end = std::min(a.count, (index + 1) * kGrain);
    for (int64_t i = index * kGrain; i < end; ++i) {
      const float value = random_weight(a.seed, static_cast<uint64_t>(a.first + i), a.scale);
      if (a.dtype == DType::kF32) {
        static_cast<float*>(a.to)[i] = value;
      } else {
        static_cast<uint16_t*>(a.to)[i] = bf16_from_float(value);
      }
    }
  });
}

}  // namespace foretoken::cpu
