#pragma once
#include <cstring>

#include "kernels/attention/cpu/fp8_entry.h"
#include "kernels/cpu/hot.h"
#include "kernels/latent/compressed_entry.h"

namespace foretoken::cpu {

// Stores the elements of an entry as codes. T: the type of those that are none.
template <class T>
FT_INLINE void store_coded_entry(const EntryForm& form, const float* x, std::byte* entry) {
  auto* codes = reinterpret_cast<uint8_t*>(entry);
  for (int group = 0; group < form.groups(); ++group) {
    const int first = group * kCodedGroup;
    const int count = form.coded() - first < kCodedGroup ? form.coded() - first : kCodedGroup;
    uint32_t bits = 0;  // as integers, so that no NaN is passed over
    for (int i = first; i < first + count; ++i) {
      uint32_t own;
      std::memcpy(&own, x + i, sizeof own);
      own &= 0x7fffffffu;
      bits = own > bits ? own : bits;
    }
    float highest;
    std::memcpy(&highest, &bits, sizeof highest);
    const uint8_t power = coded_power(highest);
    store_fp8_codes(x + first, count, coded_scale(power), codes + first);
    codes[form.powers_at() + group] = power;
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
    const float scale = coded_scale(codes[form.powers_at() + group]);
    widen_codes(codes + first, count, scale, out + first);
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
