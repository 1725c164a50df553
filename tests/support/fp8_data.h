#pragma once
#include <vector>

#include "base/float8.h"
#include "kernels/attention/kv_layer.h"
#include "support/latent_data.h"
#include "support/random_data.h"

namespace foretoken {

// Entries of `values`, head_dim each, in the order of the cache of such a layer of KvFormat::kFp8,
// with the float of each element. scales: of heads, or null.
inline TypedData fp8_data(const std::vector<float>& values, const KvLayer& kv,
                          const float* scales) {
  if (kv.value_dim > 0) return latent_data(values, kv);
  const auto dim = static_cast<size_t>(kv.head_dim);
  TypedData out{std::vector<uint8_t>(values.size()), values};
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t head = i / dim / size_t(kv.block_size) % size_t(kv.num_kv_heads);
    const float scale = scales == nullptr ? 1.0f : scales[head];
    out.bytes[i] = e4m3_code(values[i] / scale);
    out.values[i] = e4m3_value(out.bytes[i]) * scale;
  }
  return out;
}

}  // namespace foretoken
