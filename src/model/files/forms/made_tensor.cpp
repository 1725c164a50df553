#include "model/files/forms/made_tensor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "model/files/containers/safetensors.h"
#include "model/files/forms/convert.h"

namespace foretoken {
namespace {

// Rows that are made at once: a row of the factor is read once for all of them.
constexpr int64_t kRowsAtOnce = 8;
constexpr float kLeastLength = 1e-12F;  // as torch.nn.functional.normalize has it
constexpr float kLeastMean = 1e-5F;     // as transformers' BitNet has it

void make_unit(float* row, int64_t count) {
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) squares += double(row[i]) * row[i];
  const float length = std::max(static_cast<float>(std::sqrt(squares)), kLeastLength);
  for (int64_t i = 0; i < count; ++i) row[i] /= length;
}

void make_ternary(float* values, int64_t count, float mean) {
  const float scale = 1.0F / std::max(mean, kLeastMean);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = std::clamp(std::nearbyint(values[i] * scale), -1.0F, 1.0F) / scale;
  }
}

}  // namespace

TensorView made_view(const TensorView& plain, const MadeTensor& made) {
  TensorView view;
  view.name = plain.name;
  view.file = plain.file;
  view.dtype = FileDType::kOther;
  view.dtype_name = made.type_name();
  view.shape = made.shape();
  view.num_bytes = plain.num_bytes;
  view.made = &made;
  return view;
}

MadeTensor::MadeTensor(const TensorView& plain, Making making)
    : plain_(plain),
      making_(making),
      rows_(plain.shape.at(0)),
      inner_(plain.shape.at(1)),
      cols_(inner_) {
  FT_CHECK(making != Making::kProduct && making != Making::kScaledColumns);
}

MadeTensor::MadeTensor(const TensorView& plain, std::vector<float> factor, int64_t cols)
    : plain_(plain),
      making_(Making::kProduct),
      rows_(plain.shape.at(0)),
      inner_(plain.shape.at(1)),
      cols_(cols),
      factor_(std::move(factor)) {
  FT_CHECK(std::ssize(factor_) == inner_ * cols_);
}

MadeTensor::MadeTensor(const TensorView& plain, std::vector<float> columns)
    : plain_(plain),
      making_(Making::kScaledColumns),
      rows_(plain.shape.at(0)),
      inner_(plain.shape.at(1)),
      cols_(inner_),
      factor_(std::move(columns)) {
  FT_CHECK(std::ssize(factor_) == cols_);
}

MadeTensor::MadeTensor(const TensorView& plain, std::vector<float> factors, Making making)
    : plain_(plain),
      making_(making),
      rows_(plain.num_elements() / plain.shape.back() * (making == Making::kDoubledRows ? 2 : 1)),
      inner_(plain.shape.back()),
      cols_(inner_),
      factor_(std::move(factors)) {
  const bool by_column = making == Making::kShiftedRows || making == Making::kDoubledRows;
  const int64_t matrices = plain.shape.size() == 3 ? plain.shape[0] : 1;
  if (making == Making::kTurnedColumns) return;
  FT_CHECK(making == Making::kScaledMatrices || by_column);
  FT_CHECK(std::ssize(factor_) == (by_column ? cols_ : matrices));
}

MadeTensor::MadeTensor(const TensorView& plain, Making making, const Padding& padding)
    : plain_(plain),
      making_(making),
      rows_(making == Making::kPaddedRows ? plain.shape.at(0) / padding.from * padding.to
                                          : plain.shape.at(0)),
      inner_(plain.shape.at(1)),
      cols_(making == Making::kPaddedRows ? inner_ : inner_ / padding.from * padding.to),
      padding_(padding) {
  FT_CHECK(making == Making::kPaddedRows || making == Making::kPaddedColumns);
}

const char* MadeTensor::type_name() const {
  return making_ == Making::kUnitRows         ? "unit rows"
         : making_ == Making::kTernary        ? "ternary"
         : making_ == Making::kProduct        ? "a product"
         : making_ == Making::kScaledColumns  ? "scaled columns"
         : making_ == Making::kTurnedColumns  ? "turned columns"
         : making_ == Making::kShiftedRows    ? "shifted rows"
         : making_ == Making::kDoubledRows    ? "doubled rows"
         : making_ == Making::kScaledMatrices ? "scaled"
                                              : "padded";
}

std::vector<int64_t> MadeTensor::shape() const {
  if (making_ == Making::kScaledMatrices) return plain_.shape;
  return {rows_, cols_};
}

// The first reader looks it up.
Status MadeTensor::find_mean(std::vector<std::byte>& raw) const {
  const std::lock_guard lock(mutex_);
  if (mean_) return {};
  double sum = 0;
  std::vector<float> row(static_cast<size_t>(inner_));
  for (int64_t r = 0; r < rows_; ++r) {
    FT_RETURN_IF_ERROR(
        foretoken::read_elements(plain_, r * inner_, inner_, DType::kF32, row.data(), raw));
    for (const float value : row) sum += std::fabs(value);
  }
  mean_ = static_cast<float>(sum / std::max<double>(1, double(rows_) * double(inner_)));
  return {};
}

void MadeTensor::multiply(const float* rows, int64_t num_rows, float* to) const {
  std::fill_n(to, num_rows * cols_, 0.0F);
  for (int64_t k = 0; k < inner_; ++k) {
    const float* line = factor_.data() + k * cols_;
    for (int64_t r = 0; r < num_rows; ++r) {
      const float x = rows[r * inner_ + k];
      float* out = to + r * cols_;
      for (int64_t c = 0; c < cols_; ++c) out[c] += x * line[c];
    }
  }
}

void MadeTensor::turn_columns(const float* rows, int64_t num_rows, float* to) const {
  const auto group = static_cast<int64_t>(std::lround(std::sqrt(double(factor_.size()))));
  FT_CHECK(group * group == std::ssize(factor_) && cols_ % group == 0);
  std::fill_n(to, num_rows * cols_, 0.0F);
  for (int64_t at = 0; at < num_rows * cols_; at += group) {
    float* out = to + at;
    for (int64_t i = 0; i < group; ++i) {
      const float x = rows[at + i];
      const float* line = factor_.data() + i * group;
      for (int64_t c = 0; c < group; ++c) out[c] += x * line[c];
    }
  }
}

Status MadeTensor::read_padded_rows(int64_t first, int64_t count, float* to,
                                    std::vector<std::byte>& raw) const {
  for (int64_t row = first; row < first + count; ++row, to += cols_) {
    const int64_t group = row / padding_.to, in_group = row % padding_.to;
    if (in_group >= padding_.from) {
      std::fill_n(to, cols_, 0.0F);
      continue;
    }
    const int64_t of_file = group * padding_.from + in_group;
    FT_RETURN_IF_ERROR(
        foretoken::read_elements(plain_, of_file * inner_, inner_, DType::kF32, to, raw));
    for (int64_t c = 0; c < cols_; ++c) to[c] *= padding_.scale;
  }
  return {};
}

Status MadeTensor::read_doubled_rows(int64_t first, int64_t count, float* to,
                                     std::vector<std::byte>& raw) const {
  const int64_t half = rows_ / 2;
  for (int64_t row = first; row < first + count; ++row, to += cols_) {
    FT_RETURN_IF_ERROR(
        foretoken::read_elements(plain_, row % half * inner_, inner_, DType::kF32, to, raw));
    for (int64_t c = 0; row >= half && c < cols_; ++c) to[c] += factor_[static_cast<size_t>(c)];
  }
  return {};
}

void MadeTensor::pad_columns(const float* rows, int64_t num_rows, float* to) const {
  std::fill_n(to, num_rows * cols_, 0.0F);
  for (int64_t i = 0; i < num_rows * inner_; ++i) {
    const int64_t row = i / inner_, col = i % inner_;
    to[row * cols_ + col / padding_.from * padding_.to + col % padding_.from] =
        rows[i] * padding_.scale;
  }
}

// Rows [first, first + count) as floats.
Status MadeTensor::make_rows(int64_t first, int64_t count, float* to,
                             std::vector<std::byte>& raw) const {
  if (making_ == Making::kPaddedRows) return read_padded_rows(first, count, to, raw);
  if (making_ == Making::kDoubledRows) return read_doubled_rows(first, count, to, raw);
  const bool in_place = making_ == Making::kUnitRows || making_ == Making::kTernary ||
                        making_ == Making::kScaledColumns || making_ == Making::kShiftedRows ||
                        making_ == Making::kScaledMatrices;
  std::vector<float> other(in_place ? 0 : static_cast<size_t>(count * inner_));
  float* plain = in_place ? to : other.data();
  FT_RETURN_IF_ERROR(
      foretoken::read_elements(plain_, first * inner_, count * inner_, DType::kF32, plain, raw));
  switch (making_) {
    case Making::kUnitRows:
      for (int64_t r = 0; r < count; ++r) make_unit(to + r * cols_, cols_);
      return {};
    case Making::kTernary:
      make_ternary(to, count * cols_, *mean_);
      return {};
    case Making::kScaledColumns:
      for (int64_t i = 0; i < count * cols_; ++i) to[i] *= factor_[static_cast<size_t>(i % cols_)];
      return {};
    case Making::kShiftedRows:
      for (int64_t i = 0; i < count * cols_; ++i) to[i] += factor_[static_cast<size_t>(i % cols_)];
      return {};
    case Making::kScaledMatrices: {
      const int64_t rows_each = rows_ / std::ssize(factor_);
      for (int64_t i = 0; i < count * cols_; ++i) {
        to[i] *= factor_[static_cast<size_t>((first + i / cols_) / rows_each)];
      }
      return {};
    }
    case Making::kProduct:
      multiply(plain, count, to);
      return {};
    case Making::kTurnedColumns:
      turn_columns(plain, count, to);
      return {};
    case Making::kPaddedRows:
    case Making::kDoubledRows:
    case Making::kPaddedColumns:
      pad_columns(plain, count, to);
      return {};
  }
  return {};
}

Status MadeTensor::read_elements(int64_t first, int64_t count, DType dtype, void* to,
                                 std::vector<std::byte>& raw) const {
  if (making_ == Making::kTernary) FT_RETURN_IF_ERROR(find_mean(raw));
  std::vector<float> made(static_cast<size_t>(kRowsAtOnce * cols_));
  for (int64_t done = 0; done < count;) {
    const int64_t row = (first + done) / cols_, col = (first + done) % cols_;
    const int64_t last = (first + count - 1) / cols_;
    const int64_t num_rows = std::min(kRowsAtOnce, last - row + 1);
    FT_RETURN_IF_ERROR(make_rows(row, num_rows, made.data(), raw));
    const int64_t here = std::min(num_rows * cols_ - col, count - done);
    for (int64_t i = 0; i < here; ++i) {
      store_element(made[static_cast<size_t>(col + i)], dtype, to, done + i);
    }
    done += here;
  }
  return {};
}

}  // namespace foretoken
