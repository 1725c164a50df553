#include "kernels/latent/attend_compressed.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/lane_math.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/thread_scratch.h"
#include "kernels/latent/cpu/coded_entry.h"
#include "kernels/latent/cpu/tail_turn.h"

namespace foretoken::cpu {
namespace {

constexpr int kSeenAtOnce = 64;

// One head of a row while it goes through what it sees.
struct CompressedHead {
  alignas(64) float q[kMaxCompressedDim];
  alignas(64) float out[kMaxCompressedDim];
  float largest;
  float sum;
};

template <class T>
FT_INLINE void widen_octet(const T* from, Octet& out) {
  if constexpr (sizeof(T) == sizeof(float)) {
    load(out, from);
  } else {
    for (int i = 0; i < kOctet; ++i) out[i] = load_one(from + i);
  }
}

template <class T>
FT_INLINE float entry_score(const float* q, const T* entry, int dim) {
  Octet sum = {};
  for (int c = 0; c < dim; c += kOctet) {
    Octet a, b;
    load(a, q + c);
    widen_octet(entry + c, b);
    sum += a * b;
  }
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

// Takes in `count` entries, at most kSeenAtOnce.
template <class T>
FT_INLINE void take_in(const T* const* entries, int count, int dim, float scale,
                       CompressedHead& head) {
  float scores[kSeenAtOnce];
  float largest = head.largest;
  for (int i = 0; i < count; ++i) {
    scores[i] = entry_score(head.q, entries[i], dim) * scale;
    largest = std::max(largest, scores[i]);
  }
  const float shrink = sample_math::exp_nonpositive(head.largest - largest);
  head.largest = largest;
  head.sum *= shrink;
  for (int c = 0; c < dim; ++c) head.out[c] *= shrink;
  for (int i = 0; i < count; ++i) {
    const float weight = sample_math::exp_nonpositive(scores[i] - largest);
    head.sum += weight;
    for (int c = 0; c < dim; c += kOctet) {
      Octet out, entry;
      load(out, head.out + c);
      widen_octet(entries[i] + c, entry);
      store(head.out + c, out + weight * entry);
    }
  }
}

// Entries of codes, widened.
struct WidenedEntries {
  alignas(64) float elements[kSeenAtOnce][kMaxCompressedDim];
};

FT_INLINE const std::byte* entry_at(const AttendCompressedArgs& a, const CompressedSight& sight,
                                    int row, int i) {
  const void* base = i < sight.num_window ? a.kv : a.entries;
  return static_cast<const std::byte*>(base) + seen_entry(a, sight, row, i) * entry_form(a).bytes();
}

template <class T>
FT_INLINE void take_in_from(const AttendCompressedArgs& a, const CompressedSight& sight, int row,
                            int first, int count, CompressedHead& head) {
  if (entry_form(a).has_codes()) {
    auto& widened = thread_scratch<WidenedEntries>().elements;
    const float* entries[kSeenAtOnce];
    for (int i = 0; i < count; ++i) {
      widen_coded_entry<T>(entry_form(a), entry_at(a, sight, row, first + i), widened[i]);
      entries[i] = widened[i];
    }
    return take_in(entries, count, a.head_dim, a.scale, head);
  }
  const T* entries[kSeenAtOnce];
  for (int i = 0; i < count; ++i) {
    entries[i] = reinterpret_cast<const T*>(entry_at(a, sight, row, first + i));
  }
  take_in(entries, count, a.head_dim, a.scale, head);
}

template <class T>
FT_INLINE void attend_head(const AttendCompressedArgs& a, int row, int h, CompressedHead& head) {
  const CompressedSight sight = compressed_sight(a, row, a.positions[row]);
  const int64_t at = (int64_t{row} * a.num_heads + h) * a.head_dim;
  for (int c = 0; c < a.head_dim; ++c) {
    head.q[c] = load_one(static_cast<const T*>(a.q) + at + c);
    head.out[c] = 0;
  }
  head.largest = a.sinks != nullptr ? a.sinks[h] : -std::numeric_limits<float>::infinity();
  head.sum = a.sinks != nullptr ? 1 : 0;
  const int seen = sight.num_window + sight.num_entries;
  for (int first = 0; first < seen; first += kSeenAtOnce) {
    take_in_from<T>(a, sight, row, first, std::min(kSeenAtOnce, seen - first), head);
  }
  if (a.states != nullptr) return;
  for (int c = 0; c < a.head_dim; ++c) head.out[c] /= head.sum;
}

FT_HOT void attend_head_f32(const AttendCompressedArgs& a, int row, int h, CompressedHead& head) {
  attend_head<float>(a, row, h, head);
}
FT_HOT void attend_head_bf16(const AttendCompressedArgs& a, int row, int h, CompressedHead& head) {
  attend_head<uint16_t>(a, row, h, head);
}

void leave_state(const AttendCompressedArgs& a, int row, int h, const CompressedHead& head) {
  float* to = compressed_state(a, row, h);
  std::copy_n(head.out, a.head_dim, to);
  to[a.head_dim] = head.largest;
  to[a.head_dim + 1] = head.sum;
}

void attend_one(const AttendCompressedArgs& a, int row, int h) {
  CompressedHead head;
  (a.dtype == DType::kF32 ? attend_head_f32 : attend_head_bf16)(a, row, h, head);
  if (a.states != nullptr) return leave_state(a, row, h, head);
  TailTurn turn;
  make_tail_turn(a.inv_freq, a.rope_dim / 2, a.scaling, a.positions[row] + a.position_shift, true,
                 &turn);
  turn_tail(turn, head.out, a.head_dim);
  const int64_t at = (int64_t{row} * a.num_heads + h) * a.head_dim;
  for (int c = 0; c < a.head_dim; ++c) {
    if (a.dtype == DType::kF32) {
      static_cast<float*>(a.out)[at + c] = head.out[c];
    } else {
      store_one(static_cast<uint16_t*>(a.out) + at + c, head.out[c]);
    }
  }
}

}  // namespace

void attend_compressed(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const AttendCompressedArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, int64_t{rows} * a.num_heads, 64 * int64_t{a.head_dim}, [&](int64_t task) {
    attend_one(a, static_cast<int>(task / a.num_heads), static_cast<int>(task % a.num_heads));
  });
}

}  // namespace foretoken::cpu
