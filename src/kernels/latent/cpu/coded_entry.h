#pragma once
#include <cstring>

#include "kernels/attention/cpu/fp8_entry.h"
#include "kernels/attention/cpu/int8_entry.h"
#include "kernels/cpu/hot.h"
#include "kernels/latent/compressed_entry.h"

namespace foretoken::cpu {

// The codes of a group, and what they are multiplied by, to `scale`.
FT_INLINE void store_coded_group(KvFormat format, const float* x, int count, uint8_t* codes,
                                 uint8_t* scale) {
  if (format == KvFormat::kInt8) {
    const CodeScale found = code_scale(x, count, 127.0f);
    store_codes(x, count, found.inverse, reinterpret_cast<int8_t*>(codes));
    std::memcpy(scale, &found.scale, sizeof found.scale);
    return;
  }
  const uint32_t bits = highest_bits(x, count);
  float highest;
  std::memcpy(&highest, &bits, sizeof highest);
  *scale = coded_power(highest);
  store_fp8_codes(x, count, coded_scale(*scale), codes);
}

FT_INLINE void widen_coded_group(KvFormat format, const uint8_t* codes, int count,
                                 const uint8_t* scale, float* out) {
  if (format == KvFormat::kInt8) {
    float own;
    std::memcpy(&own, scale, sizeof own);
    widen_int8_codes(reinterpret_cast<const int8_t*>(codes), count, own, out);
  } else {
    widen_codes(codes, count, coded_scale(*scale), out);
  }
}

// Stores the elements of an entry as codes. T: the type of those that are none.
template <class T>
FT_INLINE void store_coded_entry(const EntryForm& form, const float* x, std::byte* entry) {
  auto* codes = reinterpret_cast<uint8_t*>(entry);
  for (int group = 0; group < form.groups(); ++group) {
    const int first = group * kCodedGroup;
    const int count = form.coded() - first < kCodedGroup ? form.coded() - first : kCodedGroup;
    store_coded_group(form.format, x + first, count, codes + first,
                      codes + form.scales_at() + group * form.scale_bytes());
  }
  T* tail = reinterpret_cast<T*>(entry + form.tail_at());
  for (int i = 0; i < form.rope_dim; ++i) store_one(tail + i, x[form.coded() + i]);
}

// Its elements, as codes leave them.
template <class T>
FT_INLINE void widen_coded_entry(const EntryForm& form, const std::byte* entry, float* out) {
  const auto* codes = reinterpret_cast<const uint8_t*>(entry);
  for (int group = 0; group < form.groups(); ++group) {
    const int first = group * kCodedGroup;
    const int count = form.coded() - first < kCodedGroup ? form.coded() - first : kCodedGroup;
    widen_coded_group(form.format, codes + first, count,
                      codes + form.scales_at() + group * form.scale_bytes(), out + first);
  }
  const T* tail = reinterpret_cast<const T*>(entry + form.tail_at());
  for (int i = 0; i < form.rope_dim; ++i) out[form.coded() + i] = load_one(tail + i);
}

// Stores the elements of an entry in either format.
template <class T>
FT_INLINE void store_entry(const EntryForm& form, const float* x, std::byte* entry) {
  if (form.has_codes()) return store_coded_entry<T>(form, x, entry);
  for (int i = 0; i < form.head_dim; ++i) store_one(reinterpret_cast<T*>(entry) + i, x[i]);
}

}  // namespace foretoken::cpu
