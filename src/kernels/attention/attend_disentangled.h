#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Disentangled attention (He et al. 2021, DeBERTa) of whole texts, whose rows are all rows of the
// step and lie side by side: row r at position p sees those of the same text, from row r - p to row
// r - p + last_seen[r]. Head h scores the key j places after the text's first row by
//   scale * (q . k_j + q . place_keys[h][place] + k_j . place_queries[h][place]),
// place = places[d + reach] of the distance d = p - j, or of the farthest one that is listed.
// Softmax and sums are in float, in the order of the keys. For the live token rows; nothing is read
// of a KV cache. Of a row whose text is not all in the step, it sees what is there.
struct AttendDisentangledArgs {
  static constexpr Op kOp = Op::kAttendDisentangled;
  const StepCounts* counts;
  const float* qkv;            // [max_rows, 3 * num_heads * head_dim]: queries, keys, values
  void* out;                   // [max_rows, num_heads * head_dim] of dtype
  const int32_t* positions;    // [max_rows]
  const int32_t* last_seen;    // [max_rows]: positions
  const float* place_keys;     // [num_heads, num_places, head_dim]
  const float* place_queries;  // the same
  const int32_t* places;       // [2 * reach + 1], each below num_places
  int32_t reach;
  int32_t num_places;
  int32_t max_rows;
  int32_t num_heads;
  int32_t head_dim;  // a multiple of 8 that divides kDisentangledDim
  float scale;
  DType dtype;  // kF32 or kBF16
};

inline constexpr int kDisentangledDim = 128;

// What a row sees: rows [first, first + count), the first of which stands at `position`.
struct DisentangledSight {
  int32_t first;
  int32_t count;
  int32_t position;
};

FT_HD inline DisentangledSight disentangled_sight(const AttendDisentangledArgs& a, int32_t row,
                                                  int32_t num_rows) {
  const int32_t position = a.positions[row], begin = position > row ? position - row : 0;
  const int32_t last = a.last_seen[row] - position;  // rows behind this one
  const int32_t end = row + last < num_rows ? row + last + 1 : num_rows;
  const int32_t first = row - (position - begin);
  return {first, end - first, begin};
}

// Of a key so many positions before the row.
FT_HD inline int32_t disentangled_place(const AttendDisentangledArgs& a, int32_t distance) {
  const int32_t cut = distance < a.reach ? distance : a.reach;
  return a.places[(cut < -a.reach ? -a.reach : cut) + a.reach];
}

void attend_disentangled(Queue& queue, const AttendDisentangledArgs& args);

}  // namespace foretoken
