#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/float8.h"
#include "kernels/attention/kv_layer.h"
#include "support/random_data.h"

namespace foretoken {

// Entries of `values`, head_dim each, in the order of the cache of such a layer of KvFormat::kFp8,
// with the float of each element. scales: of heads, or null.
inline TypedData fp8_data(const std::vector<float>& values, const KvLayer& kv,
                          const float* scales) {
  const auto dim = static_cast<size_t>(kv.head_dim), latents = static_cast<size_t>(kv.value_dim);
  const auto size = static_cast<size_t>(kv_entry_bytes(kv));
  TypedData out{std::vector<uint8_t>(values.size() / dim * size), values};
  for (size_t at = 0; at < values.size() / dim; ++at) {
    const float* x = &values[at * dim];
    float* exact = &out.values[at * dim];
    uint8_t* entry = &out.bytes[at * size];
    const size_t head = at / size_t(kv.block_size) % size_t(kv.num_kv_heads);
    for (size_t i = 0; latents == 0 && i < dim; ++i) {
      const float scale = scales == nullptr ? 1.0f : scales[head];
      entry[i] = e4m3_code(x[i] / scale);
      exact[i] = e4m3_value(entry[i]) * scale;
    }
    for (size_t first = 0; first < latents; first += kFp8LatentGroup) {
      const size_t end = std::min<size_t>(first + kFp8LatentGroup, latents);
      float highest = 0;
      for (size_t i = first; i < end; ++i) highest = std::max(highest, std::abs(x[i]));
      const float scale = highest / kMaxE4m3;
      std::memcpy(entry + latents + first / kFp8LatentGroup * sizeof scale, &scale, sizeof scale);
      for (size_t i = first; i < end; ++i) {
        entry[i] = e4m3_code(x[i] / scale);
        exact[i] = typed_data({e4m3_value(entry[i]) * scale}, kv.dtype).values[0];
      }
    }
    if (latents == 0) continue;
    const TypedData rest = typed_data(std::vector<float>(x + latents, x + dim), kv.dtype);
    std::copy(rest.values.begin(), rest.values.end(), exact + latents);
    std::copy(rest.bytes.begin(), rest.bytes.end(), entry + fp8_plain_at(kv.value_dim));
  }
  return out;
}

}  // namespace foretoken
