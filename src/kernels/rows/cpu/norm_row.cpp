#include "kernels/rows/cpu/norm_row.h"

#include <cmath>

#include "kernels/cpu/hot.h"

namespace foretoken::cpu {
namespace {

FT_INLINE void load_sum(Lanes& out, const NormRow& row, int at) {
  load(out, row.x + at);
  if (row.delta == nullptr) return;
  Lanes more;
  load(more, row.delta + at);
  out += more * row.delta_scale;
}

FT_INLINE float sum_at(const NormRow& row, int at) {
  return row.delta == nullptr ? row.x[at] : row.x[at] + row.delta[at] * row.delta_scale;
}

FT_HOT float row_squares(const NormRow& row) {
  Lanes sum = {};
  int i = 0;
  for (; i + kLanes <= row.size; i += kLanes) {
    Lanes lanes;
    load_sum(lanes, row, i);
    sum += lanes * lanes;
  }
  float total = sum_lanes(sum);
  for (; i < row.size; ++i) total += sum_at(row, i) * sum_at(row, i);
  return total;
}

template <class Out>
FT_INLINE void scale_row(const NormRow& row, const float* weight, float factor, Out* out) {
  int i = 0;
  for (; i + kLanes <= row.size; i += kLanes) {
    Lanes lanes, w;
    load_sum(lanes, row, i);
    if (weight != nullptr) {
      load(w, weight + i);
      lanes = lanes * factor * w;
    }
    store(out + i, lanes);
  }
  for (; i < row.size; ++i) {
    const float x = sum_at(row, i);
    store_one(out + i, weight == nullptr ? x : x * factor * weight[i]);
  }
}

FT_HOT void scale_row_f32(const NormRow& row, const float* w, float factor, float* out) {
  scale_row(row, w, factor, out);
}
FT_HOT void scale_row_bf16(const NormRow& row, const float* w, float factor, uint16_t* out) {
  scale_row(row, w, factor, out);
}

FT_HOT float row_mean(const NormRow& row) {
  Lanes sum = {};
  int i = 0;
  for (; i + kLanes <= row.size; i += kLanes) {
    Lanes lanes;
    load_sum(lanes, row, i);
    sum += lanes;
  }
  float total = sum_lanes(sum);
  for (; i < row.size; ++i) total += sum_at(row, i);
  return total / static_cast<float>(row.size);
}

FT_HOT float row_variance(const NormRow& row, float mean) {
  Lanes sum = {};
  int i = 0;
  for (; i + kLanes <= row.size; i += kLanes) {
    Lanes lanes;
    load_sum(lanes, row, i);
    lanes -= mean;
    sum += lanes * lanes;
  }
  float total = sum_lanes(sum);
  for (; i < row.size; ++i) {
    const float apart = sum_at(row, i) - mean;
    total += apart * apart;
  }
  return total / static_cast<float>(row.size);
}

template <class Out>
FT_INLINE void center_row(const NormRow& row, const NormWeights& norm, float eps, Out* out) {
  const float mean = norm.weight == nullptr ? 0 : row_mean(row);
  const float factor = norm.weight == nullptr ? 1 : 1.0f / std::sqrt(row_variance(row, mean) + eps);
  int i = 0;
  for (; i + kLanes <= row.size; i += kLanes) {
    Lanes lanes, more;
    load_sum(lanes, row, i);
    if (norm.weight != nullptr) {
      load(more, norm.weight + i);
      lanes = (lanes - mean) * factor * more;
    }
    if (norm.weight != nullptr && norm.bias != nullptr) {
      load(more, norm.bias + i);
      lanes += more;
    }
    store(out + i, lanes);
  }
  for (; i < row.size; ++i) {
    const float weight = norm.weight == nullptr ? 1 : norm.weight[i];
    const float bias = norm.weight == nullptr || norm.bias == nullptr ? 0 : norm.bias[i];
    store_one(out + i, (sum_at(row, i) - mean) * factor * weight + bias);
  }
}

FT_HOT void center_row_f32(const NormRow& row, const NormWeights& norm, float eps, float* out) {
  center_row(row, norm, eps, out);
}
FT_HOT void center_row_bf16(const NormRow& row, const NormWeights& norm, float eps, uint16_t* out) {
  center_row(row, norm, eps, out);
}

float factor_of(const NormRow& row, const float* weight, float eps) {
  if (weight == nullptr) return 1;
  return 1.0f / std::sqrt(row_squares(row) / static_cast<float>(row.size) + eps);
}

}  // namespace

void write_normed(const NormRow& row, const float* weight, float eps, float* out) {
  scale_row_f32(row, weight, factor_of(row, weight, eps), out);
}
void write_normed(const NormRow& row, const float* weight, float eps, uint16_t* out) {
  scale_row_bf16(row, weight, factor_of(row, weight, eps), out);
}
void write_layer_normed(const NormRow& row, const NormWeights& norm, float eps, float* out) {
  center_row_f32(row, norm, eps, out);
}
void write_layer_normed(const NormRow& row, const NormWeights& norm, float eps, uint16_t* out) {
  center_row_bf16(row, norm, eps, out);
}

}  // namespace foretoken::cpu
