#include "kernels/rows/pool.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/plan_layout.h"

namespace foretoken::cpu {
namespace {

constexpr int kSlice = 512;  // hidden columns of one piece of work

template <class T>
FT_INLINE void add_row(float* sum, const T* row, int count) {
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Lanes lanes, total;
    load(lanes, row + i);
    load(total, sum + i);
    total += lanes;
    store(sum + i, total);
  }
  for (; i < count; ++i) sum[i] += load_one(row + i);
}

FT_HOT void add_row_f32(float* sum, const float* row, int count) { add_row(sum, row, count); }
FT_HOT void add_row_bf16(float* sum, const uint16_t* row, int count) { add_row(sum, row, count); }

template <class T>
void keep_largest(float* most, const T* row, int count) {
  for (int i = 0; i < count; ++i) most[i] = std::max(most[i], load_one(row + i));
}

// The product is rounded before it is added, as on other devices.
template <class T>
void add_weighted(float* sum, const T* row, float weight, int count) {
  for (int i = 0; i < count; ++i) {
    const volatile float product = weight * load_one(row + i);
    sum[i] += product;
  }
}

// Columns [begin, begin + count) of one span.
struct Piece {
  const PoolArgs& args;
  const SpanState& span;
  int begin;
  int count;

  float* accumulator() const {
    return args.accumulators + int64_t{span.slot} * args.hidden + begin;
  }
  int64_t place(int32_t offset) const {
    return int64_t{span.row_begin + offset} * args.hidden + begin;
  }
  void add_state(int32_t offset) const {
    if (args.dtype == DType::kF32) {
      add_row_f32(accumulator(), static_cast<const float*>(args.states) + place(offset), count);
    } else {
      add_row_bf16(accumulator(), static_cast<const uint16_t*>(args.states) + place(offset), count);
    }
  }
  template <class Use>
  void with_state(int32_t offset, const Use& use) const {
    if (args.dtype == DType::kF32) {
      use(static_cast<const float*>(args.states) + place(offset));
    } else {
      use(static_cast<const uint16_t*>(args.states) + place(offset));
    }
  }
};

void gather(const Piece& piece, DevicePooling pooling, int32_t first, bool complete) {
  const int32_t rows = piece.span.num_rows;
  const bool is_max = pooling == DevicePooling::kMax;
  if (first == 0) {
    std::fill_n(piece.accumulator(), piece.count,
                is_max ? -std::numeric_limits<float>::infinity() : 0.0f);
  }
  if (pooling == DevicePooling::kMean || pooling == DevicePooling::kMeanSqrtLen) {
    for (int32_t i = 0; i < rows; ++i) piece.add_state(i);
  } else if (is_max) {
    for (int32_t i = 0; i < rows; ++i) {
      piece.with_state(
          i, [&](const auto* row) { keep_largest(piece.accumulator(), row, piece.count); });
    }
  } else if (pooling == DevicePooling::kWeightedMean) {
    for (int32_t i = 0; i < rows; ++i) {
      const auto weight = static_cast<float>(first + i + 1);
      piece.with_state(
          i, [&](const auto* row) { add_weighted(piece.accumulator(), row, weight, piece.count); });
    }
  } else if (pooling == DevicePooling::kFirst && first == 0) {
    piece.add_state(0);
  } else if (pooling == DevicePooling::kLast && complete) {
    std::fill_n(piece.accumulator(), piece.count, 0.0f);
    piece.add_state(rows - 1);
  }
}

void tell_states(const Piece& piece, DevicePooling pooling, int32_t index) {
  const ResultView view = result_view(piece.args.result, piece.args.limits);
  const RowsOfStates rows = state_rows(piece.span, pooling, piece.args.limits);
  if (piece.begin == 0) view.state_rows[index] = rows;
  for (int32_t i = 0; i < rows.count; ++i) {
    float* to = view.states + int64_t{rows.begin + i} * piece.args.hidden + piece.begin;
    piece.with_state(i, [&](const auto* row) {
      for (int c = 0; c < piece.count; ++c) to[c] = load_one(row + c);
    });
  }
}

void pool_piece(const PoolArgs& a, int32_t index, int begin) {
  const SpanState& span = a.tensors.spans[index];
  const auto pooling = static_cast<DevicePooling>(a.batch.params[span.slot].pooling);
  if (pooling == DevicePooling::kNone || span.num_rows == 0) return;
  const SlotState& slot = a.batch.slots[span.slot];
  const Piece piece{a, span, begin, std::min(kSlice, a.hidden - begin)};
  const bool complete = slot.computed + span.num_rows == slot.len;
  if (complete && a.limits.max_states > 0) tell_states(piece, pooling, index);
  if (pooling == DevicePooling::kTokens) return;
  gather(piece, pooling, slot.computed, complete);
  if (!complete) return;
  const float divisor = pool_divisor(pooling, slot.len);
  float* pooled = result_view(a.result, a.limits).pooled + int64_t{index} * a.hidden + begin;
  const float* sum = piece.accumulator();
  for (int i = 0; i < piece.count; ++i) pooled[i] = sum[i] / divisor;
}

}  // namespace

void pool(const void* args, CpuPool& threads) {
  const auto& a = *static_cast<const PoolArgs*>(args);
  const int slices = (a.hidden + kSlice - 1) / kSlice;
  const int spans = std::min(a.tensors.counts->num_spans, a.limits.max_spans);
  threads.parallel_for(int64_t{spans} * slices, [&](int64_t i, int) {
    pool_piece(a, static_cast<int32_t>(i / slices), static_cast<int>(i % slices) * kSlice);
  });
}

}  // namespace foretoken::cpu
