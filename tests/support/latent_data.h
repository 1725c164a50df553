#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/float8.h"
#include "kernels/attention/kv_layer.h"
#include "support/random_data.h"

namespace foretoken {

// The code of kv.format that is nearest to x / scale, and the float that it stands for.
inline uint8_t latent_code(const KvLayer& kv, float x, float scale, float* exact) {
  if (kv.format == KvFormat::kFp8) {
    const uint8_t code = e4m3_code(x / scale);
    *exact = e4m3_value(code) * scale;
    return code;
  }
  const auto code = static_cast<int8_t>(std::lround(x / scale));
  *exact = static_cast<float>(code) * scale;
  return static_cast<uint8_t>(code);
}

// Entries of `values`, head_dim each, in the order of the cache of such a layer of latents as
// codes, with the float of each element.
inline TypedData latent_data(const std::vector<float>& values, const KvLayer& kv) {
  const auto dim = static_cast<size_t>(kv.head_dim), latents = static_cast<size_t>(kv.value_dim);
  const auto size = static_cast<size_t>(kv_entry_bytes(kv));
  const float most = kv.format == KvFormat::kFp8 ? kMaxE4m3 : 127.0f;
  TypedData out{std::vector<uint8_t>(values.size() / dim * size), values};
  for (size_t at = 0; at < values.size() / dim; ++at) {
    const float* x = &values[at * dim];
    float* exact = &out.values[at * dim];
    uint8_t* entry = &out.bytes[at * size];
    for (size_t first = 0; first < latents; first += kLatentGroup) {
      const size_t end = std::min<size_t>(first + kLatentGroup, latents);
      float highest = 0;
      for (size_t i = first; i < end; ++i) highest = std::max(highest, std::abs(x[i]));
      const float scale = highest / most;
      std::memcpy(entry + latents + first / kLatentGroup * sizeof scale, &scale, sizeof scale);
      for (size_t i = first; i < end; ++i) {
        entry[i] = latent_code(kv, x[i], scale, exact + i);
        exact[i] = typed_data({exact[i]}, kv.dtype).values[0];
      }
    }
    const TypedData rest = typed_data(std::vector<float>(x + latents, x + dim), kv.dtype);
    std::copy(rest.values.begin(), rest.values.end(), exact + latents);
    std::copy(rest.bytes.begin(), rest.bytes.end(), entry + latent_plain_at(kv.value_dim));
  }
  return out;
}

}  // namespace foretoken
