#pragma once
#include "kernels/attention/cuda/kv_codes.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/latent/compressed_entry.h"
#include "kernels/latent/cuda/tail_turn.cuh"

// Entries of compressed_entry.h, as kernels/latent/cpu/coded_entry.h has them on the CPU.
namespace foretoken::cuda {

// Stores the elements of an entry, which lie in shared memory, by a block of `Threads` threads.
template <class T, int Threads>
__device__ void store_coded_entry(const EntryForm& form, const float* x, uint8_t* entry) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int group = static_cast<int>(threadIdx.x) / 32; group < form.groups();
       group += Threads / 32) {
    const int first = group * kCodedGroup, end = min(first + kCodedGroup, form.coded());
    uint8_t* scale = entry + form.scales_at() + group * form.scale_bytes();
    const uint32_t bits = highest_bits(x, first, end);
    if (form.format == KvFormat::kInt8) {
      const CodeScale found = scale_of_highest(bits, 127.0f);
      for (int i = first + lane; i < end; i += 32) entry[i] = int8_code(x[i], found.inverse);
      if (lane == 0) memcpy(scale, &found.scale, sizeof found.scale);
      continue;
    }
    const uint8_t power = coded_power(__uint_as_float(bits));
    const float of_power = coded_scale(power);
    for (int i = first + lane; i < end; i += 32) entry[i] = e4m3_code(__fdiv_rn(x[i], of_power));
    if (lane == 0) *scale = power;
  }
  T* tail = reinterpret_cast<T*>(entry + form.tail_at());
  for (int i = static_cast<int>(threadIdx.x); i < form.rope_dim; i += Threads) {
    tail[i] = from_float<T>(x[form.coded() + i]);
  }
}

// Stores element(i) of an entry, or of a head of any length in kPlain, by a block of kTailThreads.
template <class T, class Element>
__device__ void store_turned(const EntryForm& form, const Element& element, void* to,
                             int64_t place) {
  if (!form.has_codes()) {
    T* out = static_cast<T*>(to) + place * form.head_dim;
    for (int i = threadIdx.x; i < form.head_dim; i += kTailThreads) {
      out[i] = from_float<T>(element(i));
    }
    return;
  }
  __shared__ float elements[kMaxHeadDim];
  for (int i = threadIdx.x; i < form.head_dim; i += kTailThreads) elements[i] = element(i);
  __syncthreads();
  store_coded_entry<T, kTailThreads>(form, elements,
                                     static_cast<uint8_t*>(to) + place * form.bytes());
}

// Element i of an entry in either format.
template <class T>
__device__ float entry_element(const EntryForm& form, const uint8_t* entry, int i) {
  if (!form.has_codes()) return to_float(reinterpret_cast<const T*>(entry)[i]);
  if (i >= form.coded()) {
    return to_float(reinterpret_cast<const T*>(entry + form.tail_at())[i - form.coded()]);
  }
  const uint8_t* scale = entry + form.scales_at() + i / kCodedGroup * form.scale_bytes();
  if (form.format == KvFormat::kInt8) {
    return __fmul_rn(code_value<KvFormat::kInt8>(entry[i]), bytes_as<float>(scale));
  }
  return __fmul_rn(e4m3_value(entry[i]), coded_scale(*scale));
}

}  // namespace foretoken::cuda
