#pragma once
#include <cstdint>

#include "device/dtype.h"

namespace foretoken {

// Largest head_dim of any op.
inline constexpr int kMaxHeadDim = 576;

// How the key or value of one position and KV head is stored. Its bytes depend on nothing else.
enum class KvFormat : uint8_t {
  kPlain,  // head_dim elements of KvLayer::dtype
  kInt8,   // head_dim codes from -127 to 127, then a float s: element i is s * code i
  // Codes of floats of eight bits (E4M3 of OCP 2023): element i is code i times the scale of the
  // layer and head. Of latents (value_dim > 0) the codes of the value_dim first elements, then a
  // float scale for each kFp8LatentGroup of them, then the other elements as of kPlain.
  kFp8,
};

inline constexpr int kFp8LatentGroup = 128;

// One layer's keys and values. Each cache is [num_blocks, num_kv_heads, block_size] entries.
struct KvLayer {
  void* k;
  void* v;
  int32_t num_kv_heads;
  int32_t block_size;
  int32_t head_dim;
  DType dtype;  // kF32 or kBF16; of queries and of attention's output in either format
  KvFormat format = KvFormat::kPlain;
  // 0: values lie apart. Otherwise (latent attention) the first value_dim elements of a key are the
  // value too, and v == k.
  int32_t value_dim = 0;
  // Of kFp8 without value_dim, in device memory: what codes of keys and values are multiplied by.
  // Null: 1.
  const float* k_scales = nullptr;  // [num_kv_heads]
  const float* v_scales = nullptr;  // [num_kv_heads]

  // Elements of a value.
  constexpr int32_t value_size() const { return value_dim > 0 ? value_dim : head_dim; }
};

constexpr int64_t kv_entry_bytes(KvFormat format, DType dtype, int64_t head_dim) {
  return format == KvFormat::kInt8 ? head_dim + static_cast<int64_t>(sizeof(float))
                                   : head_dim * static_cast<int64_t>(dtype_size(dtype));
}
constexpr int64_t kv_entry_bytes(const KvLayer& kv) {
  return kv_entry_bytes(kv.format, kv.dtype, kv.head_dim);
}

}  // namespace foretoken
