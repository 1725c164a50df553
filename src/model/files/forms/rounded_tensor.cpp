#include "model/files/forms/rounded_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/float8.h"
#include "model/files/containers/safetensors.h"
#include "model/files/forms/convert.h"

namespace foretoken {
namespace {

// So that codes times scales, and their reciprocals, are floats of full precision.
constexpr int kLeastExponent = -117;
constexpr int kMaxExponent = 120;

}  // namespace

float largest_magnitude(const float* values, int64_t count) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(values[i]));
  return largest;
}

float fp8_scale(float largest) {
  if (!(largest > 0) || !std::isfinite(largest)) return 1;
  int exponent = 0;
  const float fraction = std::frexp(largest / kMaxE4m3, &exponent);  // in [0.5, 1)
  if (fraction == 0.5F) --exponent;
  return std::ldexp(1.0F, std::clamp(exponent, kLeastExponent, kMaxExponent));
}

float round_to_fp8(float value, float scale) {
  return e4m3_value(e4m3_code(value * (1 / scale))) * scale;
}

Result<RoundedTensor> RoundedTensor::create(const TensorView& plain, Fp8Channels channels) {
  FT_CHECK(plain.shape.size() >= 2);
  RoundedTensor tensor(plain);
  tensor.rows_ = plain.shape[plain.shape.size() - 2];
  tensor.cols_ = plain.shape.back();
  if (channels == Fp8Channels::kColumns) FT_RETURN_IF_ERROR(tensor.find_column_scales());
  return tensor;
}

Status RoundedTensor::find_column_scales() {
  const int64_t num_rows = plain_->num_elements() / std::max<int64_t>(cols_, 1);
  column_scales_.assign(static_cast<size_t>(num_rows / rows_ * cols_), 0.0F);
  std::vector<float> row(static_cast<size_t>(cols_));
  std::vector<std::byte> raw;
  for (int64_t r = 0; r < num_rows; ++r) {
    FT_RETURN_IF_ERROR(
        foretoken::read_elements(*plain_, r * cols_, cols_, DType::kF32, row.data(), raw));
    float* largest = column_scales_.data() + r / rows_ * cols_;
    for (int64_t c = 0; c < cols_; ++c) {
      largest[c] = std::max(largest[c], std::fabs(row[static_cast<size_t>(c)]));
    }
  }
  std::transform(column_scales_.begin(), column_scales_.end(), column_scales_.begin(), fp8_scale);
  return {};
}

Status RoundedTensor::read_elements(int64_t first, int64_t count, DType dtype, void* to,
                                    std::vector<std::byte>& raw) const {
  const bool by_row = column_scales_.empty();
  std::vector<float> row(static_cast<size_t>(cols_));
  for (int64_t done = 0; done < count;) {
    const int64_t r = (first + done) / cols_, col = (first + done) % cols_;
    const int64_t here = std::min(cols_ - col, count - done);
    // A row's scale is that of all of it.
    const int64_t from = by_row ? 0 : col, wanted = by_row ? cols_ : here;
    FT_RETURN_IF_ERROR(foretoken::read_elements(*plain_, r * cols_ + from, wanted, DType::kF32,
                                                row.data() + from, raw));
    const float scale = by_row ? fp8_scale(largest_magnitude(row.data(), cols_)) : 1;
    const float* scales = by_row ? nullptr : column_scales_.data() + r / rows_ * cols_;
    for (int64_t c = col; c < col + here; ++c, ++done) {
      const float value = round_to_fp8(row[static_cast<size_t>(c)], by_row ? scale : scales[c]);
      store_element(value, dtype, to, done);
    }
  }
  return {};
}

const QuantForm* RoundedTensor::form() const { return column_scales_.empty() ? &kRows : nullptr; }

Status RoundedTensor::read_quantized(int64_t first, int64_t count, std::byte* to,
                                     std::vector<std::byte>& raw) const {
  for (int64_t row = first; row < first + count; ++row) {
    float scale = 1;
    FT_RETURN_IF_ERROR(read_codes(row, 1, reinterpret_cast<uint8_t*>(to), &scale, raw));
    std::memcpy(to + cols_, &scale, sizeof scale);
    to += cols_ + static_cast<int64_t>(sizeof scale);
  }
  return {};
}

Status RoundedTensor::read_codes(int64_t first, int64_t count, uint8_t* codes, float* scales,
                                 std::vector<std::byte>& raw) const {
  FT_CHECK(column_scales_.empty());
  std::vector<float> row(static_cast<size_t>(cols_));
  for (int64_t r = first; r < first + count; ++r) {
    FT_RETURN_IF_ERROR(
        foretoken::read_elements(*plain_, r * cols_, cols_, DType::kF32, row.data(), raw));
    const float scale = fp8_scale(largest_magnitude(row.data(), cols_));
    *scales++ = scale;
    for (const float value : row) *codes++ = e4m3_code(value * (1 / scale));
  }
  return {};
}

}  // namespace foretoken
