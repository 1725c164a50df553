#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "device/dtype.h"

namespace foretoken {

// Largest head_dim of any op.
inline constexpr int kMaxHeadDim = 576;

// How the key or value of one position and KV head is stored. Its bytes depend on nothing else.
enum class KvFormat : uint8_t {
  kPlain,  // head_dim elements of KvLayer::dtype
  kInt8,   // head_dim codes from -127 to 127, then a float s: element i is s * code i
  kFp8,    // codes of base/float8.h: element i is code i times the scale of the layer and head
};

// Behind the sizes in the shape of an op.
constexpr const char* kv_format_suffix(KvFormat format) {
  switch (format) {
    case KvFormat::kInt8:
      return ", int8";
    case KvFormat::kFp8:
      return ", fp8";
    default:
      return "";
  }
}

// Latents (value_dim > 0) have in kInt8 and kFp8 the codes of the value_dim first elements, then a
// float scale for each kLatentGroup of them, then the other elements as of kPlain; an element of a
// group is its code times the scale, rounded to `dtype`.
inline constexpr int kLatentGroup = 128;

// One layer's keys and values. Each cache is [num_blocks, num_kv_heads, block_size] entries. Where
// ranks share the positions of a sequence (context_size > 1) these are the entries of one rank: of
// position p where p % context_size == context_rank. A block then stands for block_size *
// context_size positions, and KV slots count those.
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
  int32_t context_size = 1;
  int32_t context_rank = 0;

  // Elements of a value.
  constexpr int32_t value_size() const { return value_dim > 0 ? value_dim : head_dim; }
};

// Whether the entry of a KV slot is this rank's,
FT_HD inline bool holds_slot(const KvLayer& kv, int32_t slot) {
  return slot % kv.context_size == kv.context_rank;
}
// and which of its entries that is: block * block_size + place in the block.
FT_HD inline int32_t entry_of_slot(const KvLayer& kv, int32_t slot) {
  return slot / kv.context_size;
}
// The position whose entry is at `entry`, counted so in a sequence's blocks one behind the other.
FT_HD inline int32_t position_of_entry(const KvLayer& kv, int32_t entry) {
  return entry * kv.context_size + kv.context_rank;
}
// How many of positions [0, position) have their entries here.
FT_HD inline int32_t entries_before(const KvLayer& kv, int32_t position) {
  return (position - kv.context_rank + kv.context_size - 1) / kv.context_size;
}

// Of an entry of latents as codes, bytes from its beginning: to the scales,
constexpr int32_t latent_scales_at(int32_t value_dim) { return value_dim; }
// and to the elements that are as of kPlain.
constexpr int32_t latent_plain_at(int32_t value_dim) {
  const int32_t groups = (value_dim + kLatentGroup - 1) / kLatentGroup;
  return value_dim + groups * static_cast<int32_t>(sizeof(float));
}

// value_dim as of KvLayer.
constexpr int64_t kv_entry_bytes(KvFormat format, DType dtype, int32_t head_dim,
                                 int32_t value_dim) {
  const auto element = static_cast<int64_t>(dtype_size(dtype));
  if (format == KvFormat::kPlain) return head_dim * element;
  if (value_dim > 0) return latent_plain_at(value_dim) + (head_dim - value_dim) * element;
  return head_dim + (format == KvFormat::kInt8 ? static_cast<int64_t>(sizeof(float)) : 0);
}
constexpr int64_t kv_entry_bytes(const KvLayer& kv) {
  return kv_entry_bytes(kv.format, kv.dtype, kv.head_dim, kv.value_dim);
}

// What the codes of a head's keys are multiplied by, and of its values; 1 where there are none.
FT_HD inline float key_scale(const KvLayer& kv, int32_t kv_head) {
  return kv.k_scales == nullptr ? 1.0f : kv.k_scales[kv_head];
}
FT_HD inline float value_scale(const KvLayer& kv, int32_t kv_head) {
  return kv.v_scales == nullptr ? 1.0f : kv.v_scales[kv_head];
}

}  // namespace foretoken
