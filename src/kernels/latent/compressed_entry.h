#pragma once
#include <cstdint>
#include <cstring>

#include "base/float8.h"
#include "base/host_device.h"
#include "device/dtype.h"
#include "kernels/attention/kv_layer.h"

namespace foretoken {

inline constexpr int32_t kCodedGroup = 64;
inline constexpr int32_t kEntryAlignment = 16;  // bytes

// How an entry lies in the cache that is key and value at once and whose last rope_dim elements
// turn (DeepSeek V4), of a position or of several. kPlain: its elements. kFp8: codes of
// base/float8.h of the first ones; from the next multiple of kEntryAlignment on the last rope_dim,
// as of kPlain; then for each kCodedGroup codes the power of two that they are multiplied by, as
// its exponent plus 127 in a byte (E8M0 of OCP's microscaling formats, 2023); in all a multiple of
// kEntryAlignment. The model was trained with such codes (DeepSeek-AI 2026). kInt8: the same with
// codes from -127 to 127, and for each kCodedGroup of them a float. An entry's bytes depend on its
// elements alone.
//
// Example: of 512 elements, 64 of which turn, 448 codes, 64 of bfloat16 and 7 powers are 592 bytes.
struct EntryForm {
  KvFormat format = KvFormat::kPlain;
  DType dtype = DType::kF32;
  int32_t head_dim = 0;
  int32_t rope_dim = 0;

  FT_HD constexpr bool has_codes() const { return format != KvFormat::kPlain; }
  FT_HD constexpr int32_t element() const { return dtype == DType::kBF16 ? 2 : 4; }
  FT_HD constexpr int32_t coded() const { return head_dim - rope_dim; }
  FT_HD constexpr int32_t groups() const { return (coded() + kCodedGroup - 1) / kCodedGroup; }
  FT_HD constexpr int32_t scale_bytes() const { return format == KvFormat::kInt8 ? 4 : 1; }
  // Bytes from the beginning of an entry of codes to the elements that are none, to the powers or
  // scales;
  FT_HD constexpr int32_t tail_at() const { return aligned(coded()); }
  FT_HD constexpr int32_t scales_at() const { return tail_at() + rope_dim * element(); }
  // and of an entry.
  FT_HD constexpr int32_t bytes() const {
    return has_codes() ? aligned(scales_at() + groups() * scale_bytes()) : head_dim * element();
  }

 private:
  FT_HD static constexpr int32_t aligned(int32_t bytes) {
    return (bytes + kEntryAlignment - 1) / kEntryAlignment * kEntryAlignment;
  }
};

// The power of a group whose largest magnitude is `highest`: the lowest at which its codes reach
// that far; an infinity or NaN makes all of the group NaN. Groups of tiny numbers have that of
// 1e-4, as the published model's.
FT_HD inline uint8_t coded_power(float highest) {
  const float least = (highest < 1e-4f ? 1e-4f : highest) / kMaxE4m3;
  uint32_t bits;
  memcpy(&bits, &least, sizeof bits);
  const uint32_t exponent = bits >> 23 & 0xffu;
  return static_cast<uint8_t>(exponent < 255u && (bits & 0x7fffffu) != 0 ? exponent + 1 : exponent);
}

// What a power multiplies codes by; that of 255 is infinite.
FT_HD inline float coded_scale(uint8_t power) {
  const uint32_t bits = static_cast<uint32_t>(power) << 23;
  float scale;
  memcpy(&scale, &bits, sizeof scale);
  return scale;
}

}  // namespace foretoken
