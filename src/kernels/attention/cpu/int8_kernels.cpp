#include "kernels/attention/cpu/int8_kernels.h"

#include <cmath>
#include <vector>

#include "device/cpu/cpu_isa.h"
#include "kernels/cpu/kept_kernels.h"

namespace foretoken::cpu {
namespace {

void score_plain(const Int8Entries& keys, const Int8Scores& scores) {
  for (int q = 0; q < scores.num_queries; ++q) {
    const int16_t* query = scores.queries + q * scores.query_stride;
    int32_t* dots = scores.dots + q * scores.dot_stride;
    for (int i = 0; i < keys.count; ++i) {
      int32_t sum = 0;
      for (int d = 0; d < keys.dim; ++d) sum += int32_t{query[d]} * keys.entries[i][d];
      dots[i] = sum;
    }
  }
}

void weigh_plain(const Int8Entries& values, const Int8Sums& sums) {
  for (int q = 0; q < sums.num_queries; ++q) {
    const float* weights = sums.weights + q * sums.weight_stride;
    float* out = sums.out + q * sums.out_stride;
    for (int d = 0; d < values.dim; ++d) out[d] = 0;
    for (int i = 0; i < values.count; ++i) {
      for (int d = 0; d < values.dim; ++d) {
        out[d] = std::fma(weights[i], static_cast<float>(values.entries[i][d]), out[d]);
      }
    }
  }
}

}  // namespace

#if defined(__x86_64__)
extern const Int8Kernels kAvx512VnniInt8Kernels;
extern const Int8Kernels kAvx2Int8Kernels;
#endif

namespace {

std::vector<Int8Kernels> find_kernels() {
  std::vector<Int8Kernels> found;
#if defined(__x86_64__)
  if (cpu_isa() >= CpuIsa::kAvx512 && __builtin_cpu_supports("avx512vnni")) {
    found.push_back(kAvx512VnniInt8Kernels);
  }
  if (cpu_isa() >= CpuIsa::kAvx2) found.push_back(kAvx2Int8Kernels);
#endif
  found.push_back({"plain", score_plain, weigh_plain});
  return found;
}

}  // namespace

std::span<const Int8Kernels> int8_kernels() { return kept_kernels(find_kernels); }

}  // namespace foretoken::cpu
