#include "model/files/forms/affine_tensor.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>

#include "base/check.h"
#include "base/half.h"
#include "model/files/containers/safetensors.h"
#include "model/files/forms/convert.h"

namespace foretoken {
namespace {

constexpr int64_t kRowElementsAtOnce = int64_t{4} << 20;

// Bits of the codes on a device, which has no others for scales with biases; 0: none.
uint8_t kept_bits(int32_t bits) {
  return static_cast<uint8_t>(bits == 3 ? 4 : bits == 6 ? 8 : bits);
}

Status affine_misfit(const AffineParts& parts, int64_t group) {
  return invalid_argument(
      parts.codes->file + ": the codes '" + parts.codes->name + "', " + parts.codes->dtype_name +
      " " + parts.codes->shape_text() + ", and their scales " + parts.scales->shape_text() +
      " are of no matrix of MLX with " + std::to_string(group) +
      " columns in a group and 2, 3, 4, 5, 6 or 8 bits; weights and 'quantization' of config.json "
      "must be of the same model");
}

// `count` codes of `bits` bits from the first bit at `from` on.
void take_codes_apart(const std::byte* from, int64_t count, int32_t bits, uint8_t* to) {
  uint32_t buffer = 0;
  int32_t held = 0;
  const uint32_t mask = (1u << bits) - 1;
  for (int64_t i = 0; i < count; ++i) {
    if (held < bits) {
      buffer |= std::to_integer<uint32_t>(*from++) << held;
      held += 8;
    }
    *to++ = static_cast<uint8_t>(buffer & mask);
    buffer >>= bits;
    held -= bits;
  }
}

bool are_halves(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return half_to_float(half_from_float(value)) == value; });
}

}  // namespace

Result<AffineTensor> AffineTensor::create(const AffineParts& parts, int64_t group) {
  FT_CHECK(parts.codes != nullptr && parts.scales != nullptr && parts.biases != nullptr);
  AffineTensor tensor(parts);
  const std::vector<int64_t>&codes = parts.codes->shape, &scales = parts.scales->shape;
  const bool are_rows = codes.size() >= 2 && codes.size() == scales.size() &&
                        std::equal(codes.begin(), codes.end() - 1, scales.begin());
  const bool fits = are_rows && group > 0 && parts.codes->dtype_name == "U32" &&
                    parts.biases->shape == scales && parts.codes->num_elements() > 0;
  if (!fits) return affine_misfit(parts, group);
  FT_RETURN_IF_ERROR(check_convertible(*parts.scales));
  FT_RETURN_IF_ERROR(check_convertible(*parts.biases));
  tensor.groups_ = scales.back();
  tensor.group_ = group;
  if (__builtin_mul_overflow(tensor.groups_, group, &tensor.cols_) || tensor.cols_ <= 0) {
    return affine_misfit(parts, group);
  }
  const int64_t all_bits = codes.back() * 32;
  const int64_t bits = all_bits / tensor.cols_;
  const bool are_bits = bits >= 2 && bits <= 8 && bits != 7 && bits * tensor.cols_ == all_bits;
  if (!are_bits) return affine_misfit(parts, group);
  tensor.bits_ = static_cast<int32_t>(bits);
  tensor.rows_ = parts.codes->num_elements() / codes.back();
  tensor.shape_ = codes;
  tensor.shape_.back() = tensor.cols_;
  FT_RETURN_IF_ERROR(check_finite(*parts.scales));
  FT_RETURN_IF_ERROR(check_finite(*parts.biases));
  FT_RETURN_IF_ERROR(tensor.find_form());
  return tensor;
}

Status AffineTensor::find_form() {
  Rows rows;
  std::vector<std::byte> raw;
  const int64_t most = std::max<int64_t>(kRowElementsAtOnce / groups_, 1);
  for (int64_t first = 0; first < rows_; first += most) {
    FT_RETURN_IF_ERROR(read_scales(first, std::min(most, rows_ - first), &rows, raw));
    if (!are_halves(rows.scales) || !are_halves(rows.biases)) return {};
  }
  form_ = QuantForm{kept_bits(bits_), GroupScale::kHalfAndMinimum, static_cast<int32_t>(group_)};
  return {};
}

Status AffineTensor::read_scales(int64_t first, int64_t count, Rows* rows,
                                 std::vector<std::byte>& raw) const {
  const int64_t begin = first * groups_, num = count * groups_;
  rows->scales.resize(static_cast<size_t>(num));
  rows->biases.resize(static_cast<size_t>(num));
  FT_RETURN_IF_ERROR(
      foretoken::read_elements(*parts_.scales, begin, num, DType::kF32, rows->scales.data(), raw));
  return foretoken::read_elements(*parts_.biases, begin, num, DType::kF32, rows->biases.data(),
                                  raw);
}

Status AffineTensor::read_rows(int64_t first, int64_t count, Rows* rows,
                               std::vector<std::byte>& raw) const {
  FT_CHECK(first >= 0 && count >= 0 && first + count <= rows_);
  FT_RETURN_IF_ERROR(read_scales(first, count, rows, raw));
  const int64_t row_bytes = cols_ * bits_ / 8;
  raw.resize(static_cast<size_t>(count * row_bytes));
  FT_RETURN_IF_ERROR(parts_.codes->read(first * row_bytes, count * row_bytes, raw.data()));
  rows->codes.resize(static_cast<size_t>(count * cols_));
  // Rows are whole words.
  take_codes_apart(raw.data(), count * cols_, bits_, rows->codes.data());
  return {};
}

Status AffineTensor::read_elements(int64_t first, int64_t count, DType dtype, void* to,
                                   std::vector<std::byte>& raw) const {
  const int64_t most = std::max<int64_t>(kRowElementsAtOnce / cols_, 1);
  Rows rows;
  for (int64_t done = 0; done < count;) {
    const int64_t row = (first + done) / cols_;
    const int64_t last_row = (first + count - 1) / cols_;
    const int64_t num = std::min(most, last_row - row + 1);
    FT_RETURN_IF_ERROR(read_rows(row, num, &rows, raw));
    const int64_t end = std::min((row + num) * cols_, first + count);
    for (int64_t at = first + done; at < end; ++at, ++done) {
      const int64_t own = at - row * cols_;
      const auto group = static_cast<size_t>(own / group_);
      const float product =
          rows.scales[group] * static_cast<float>(rows.codes[static_cast<size_t>(own)]);
      store_element(product + rows.biases[group], dtype, to, done);
    }
  }
  return {};
}

Status AffineTensor::read_quantized(int64_t first, int64_t count, std::byte* to) const {
  FT_CHECK(form_.has_value());
  Rows rows;
  std::vector<std::byte> raw;
  FT_RETURN_IF_ERROR(read_rows(first, count, &rows, raw));
  for (int64_t r = 0; r < count; ++r) {
    std::memcpy(to, rows.codes.data() + r * cols_, static_cast<size_t>(cols_));
    to += cols_;
    for (const std::vector<float>* list : {&rows.scales, &rows.biases}) {
      const float sign = list == &rows.biases ? -1.0F : 1.0F;
      for (int64_t g = r * groups_; g < (r + 1) * groups_; ++g) {
        const uint16_t half = half_from_float(sign * (*list)[static_cast<size_t>(g)]);
        std::memcpy(to, &half, sizeof half);
        to += sizeof half;
      }
    }
  }
  return {};
}

}  // namespace foretoken
