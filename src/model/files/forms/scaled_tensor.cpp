#include "model/files/forms/scaled_tensor.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/float8.h"
#include "base/half.h"
#include "base/microscaling.h"
#include "model/files/containers/safetensors.h"
#include "model/files/forms/convert.h"

namespace foretoken {
namespace {

constexpr int64_t kBlockBytes = 16;  // of MXFP4's codes
constexpr int64_t kFormGroup = 32;   // columns of a form's group at most

bool is_e8m0(const TensorView& scales) {
  return scales.dtype_name == "U8" || scales.dtype_name == "F8_E8M0";
}

bool is_e4m3(const TensorView& scales) { return scales.dtype_name == "F8_E4M3"; }

// What a byte that read_codes leaves stands for, but for kE2m1, of which it holds two.
std::array<float, 256> values_of(CodeType type) {
  std::array<float, 256> values;
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<uint8_t>(code);
    values[byte] = type == CodeType::kE4m3         ? e4m3_value(byte)
                   : type == CodeType::kE5m2       ? half_to_float(static_cast<uint16_t>(byte << 8))
                   : type == CodeType::kE2m1OfRows ? e2m1_value(byte & 15)
                   : type == CodeType::kInt4OfRows ? static_cast<float>(((byte & 15) ^ 8) - 8)
                                                   : static_cast<float>(static_cast<int8_t>(byte));
  }
  return values;
}

const std::array<float, 256>& byte_values(CodeType type) {
  static const std::array<float, 256> e4m3 = values_of(CodeType::kE4m3);
  static const std::array<float, 256> e5m2 = values_of(CodeType::kE5m2);
  static const std::array<float, 256> e2m1 = values_of(CodeType::kE2m1OfRows);
  static const std::array<float, 256> nibbles = values_of(CodeType::kInt4OfRows);
  static const std::array<float, 256> integers = values_of(CodeType::kInt8);
  switch (type) {
    case CodeType::kE4m3:
      return e4m3;
    case CodeType::kE5m2:
      return e5m2;
    case CodeType::kE2m1OfRows:
      return e2m1;
    case CodeType::kInt4OfRows:
      return nibbles;
    default:
      return integers;
  }
}

// Elements [first, first + count) of a tensor of scales.
Status read_scales(const TensorView& scales, int64_t first, int64_t count, float* out,
                   std::vector<std::byte>& raw) {
  const bool bytes = is_e8m0(scales) || is_e4m3(scales) || scales.dtype_name == "I8";
  if (!bytes) return read_elements(scales, first, count, DType::kF32, out, raw);
  raw.resize(static_cast<size_t>(count));
  FT_RETURN_IF_ERROR(scales.read(first, count, raw.data()));
  for (int64_t i = 0; i < count; ++i) {
    const auto byte = static_cast<uint8_t>(raw[static_cast<size_t>(i)]);
    out[i] = is_e8m0(scales)   ? e8m0_value(byte)
             : is_e4m3(scales) ? e4m3_value(byte)
                               : static_cast<float>(static_cast<int8_t>(byte));
  }
  return {};
}

// The bytes of floats that were saved as integers would be read as other numbers.
Status check_code_type(const Quantization& quantization, const ScaledParts& parts) {
  if (!quantization.is_float || parts.type != CodeType::kInt8) return {};
  const std::string& method = quantization.method;
  return invalid_argument(parts.codes->file + ": tensor '" + parts.codes->name + "' is " +
                          parts.codes->dtype_name + ", but quantization_config (quant_method '" +
                          (method.empty() ? "modelopt" : method) +
                          "') says that quantised weights are floats; fetch the checkpoint "
                          "again, or correct quantization_config");
}

// Scales of E4M3 stand for the weights' range only with a second one, but in MLX's nvfp4, which no
// method is named for.
Status check_factor(const Quantization& quantization, const ScaledParts& parts) {
  const bool has_two = parts.type == CodeType::kE2m1 && is_e4m3(*parts.scales);
  if (!has_two || parts.factor != nullptr || quantization.method.empty()) return {};
  return invalid_argument(parts.codes->file + ": the quantised matrix '" + parts.codes->name +
                          "' lacks its second scale (weight_scale_2 or weight_global_scale); fetch "
                          "the checkpoint again");
}

bool is_half(float value) { return half_to_float(half_from_float(value)) == value; }

}  // namespace

Result<ScaledTensor> ScaledTensor::create(const Quantization& quantization,
                                          const ScaledParts& parts) {
  ScaledTensor tensor(parts);
  FT_RETURN_IF_ERROR(check_code_type(quantization, parts));
  FT_RETURN_IF_ERROR(check_factor(quantization, parts));
  if (quantization.is_ternary && parts.type == CodeType::kE2m1) {
    tensor.parts_.type = CodeType::kTernary;
    tensor.parts_.inverse = quantization.divides;
  }
  if (tensor.has_paired_rows()) tensor.parts_.type = CodeType::kE2m1OfRows;
  if (tensor.has_paired_integers()) {
    // Its second scale is that of a product in E4M3 (W4A8), which is not made here.
    tensor.parts_.type = CodeType::kInt4OfRows;
    tensor.parts_.factor = nullptr;
  }
  FT_RETURN_IF_ERROR(tensor.find_shape());
  FT_RETURN_IF_ERROR(tensor.check_scale_types());
  FT_RETURN_IF_ERROR(tensor.find_blocks(quantization));
  FT_RETURN_IF_ERROR(check_finite(*tensor.parts_.scales));
  FT_RETURN_IF_ERROR(tensor.read_factors());
  FT_RETURN_IF_ERROR(tensor.find_form());
  return tensor;
}

const char* ScaledTensor::type_name() const {
  if (parts_.type == CodeType::kE4m3) return "FP8";
  if (parts_.type == CodeType::kE5m2) return "FP8 (E5M2)";
  if (parts_.type == CodeType::kInt8) return "INT8";
  if (parts_.type == CodeType::kInt4OfRows) return "INT4";
  if (parts_.type == CodeType::kTernary) return "ternary";
  return is_e8m0(*parts_.scales) ? "MXFP4" : "NVFP4";
}

// Scales of a stack then have its columns, and a row for each 16.
bool ScaledTensor::has_paired_rows() const {
  const std::vector<int64_t>& codes = parts_.codes->shape;
  const std::vector<int64_t>& scales = parts_.scales->shape;
  if (parts_.type != CodeType::kE2m1 || parts_.in_blocks) return false;
  if (codes.size() != 3 || scales.size() != 3) return false;
  return scales[0] == codes[0] && scales[2] == codes[2] && scales[1] * kPairedRows == codes[1] * 2;
}

// Floats of four bits have no floats as scales.
bool ScaledTensor::has_paired_integers() const {
  const std::vector<int64_t>& codes = parts_.codes->shape;
  const std::vector<int64_t>& scales = parts_.scales->shape;
  if (parts_.type != CodeType::kE2m1 || parts_.in_blocks || parts_.divides) return false;
  if (parts_.scales->dtype == FileDType::kOther || codes.size() != 2 || scales.size() != 2) {
    return false;
  }
  return scales[0] == codes[0] * 2 && scales[1] > 0 && codes[1] % scales[1] == 0;
}

Status ScaledTensor::find_shape() {
  const TensorView& codes = *parts_.codes;
  if (codes.shape.size() < 2 || codes.num_elements() == 0) {
    return invalid_argument(codes.file + ": tensor '" + codes.name + "' has shape " +
                            codes.shape_text() +
                            ", but codes with scales are a matrix; fetch the checkpoint again");
  }
  shape_ = codes.shape;
  if (parts_.in_blocks) {
    if (shape_.size() < 3 || shape_.back() != kBlockBytes) {
      return invalid_argument(codes.file + ": tensor '" + codes.name + "' has shape " +
                              codes.shape_text() +
                              ", but blocks of MXFP4 are [.., rows, columns / " +
                              "32, 16]; fetch the checkpoint again");
    }
    shape_.pop_back();
    shape_.back() *= kBlockBytes;
  }
  if (parts_.type == CodeType::kE2m1) shape_.back() *= 2;
  const bool paired = parts_.type == CodeType::kE2m1OfRows || parts_.type == CodeType::kInt4OfRows;
  if (paired) shape_[shape_.size() - 2] *= 2;
  if (parts_.type == CodeType::kTernary) shape_[shape_.size() - 2] *= 4;
  rows_ = shape_[shape_.size() - 2];
  cols_ = shape_.back();
  return {};
}

Status ScaledTensor::check_scale_types() const {
  const TensorView& scales = *parts_.scales;
  if (!is_e8m0(scales) && !is_e4m3(scales)) FT_RETURN_IF_ERROR(check_convertible(scales));
  if (parts_.factor != nullptr) FT_RETURN_IF_ERROR(check_convertible(*parts_.factor));
  if (parts_.zeros == nullptr) return {};
  const TensorView& zeros = *parts_.zeros;
  if (parts_.type == CodeType::kInt8 && zeros.dtype_name == "I8" && zeros.shape == scales.shape) {
    return {};
  }
  return unsupported(zeros.file + ": tensor '" + zeros.name + "' is " + zeros.dtype_name + " " +
                     zeros.shape_text() + ", but zeros are I8 and as many as the scales, " +
                     scales.shape_text() + "; save the model with symmetric weights");
}

int64_t ScaledTensor::usual_group(const Quantization& quantization) const {
  if (parts_.type != CodeType::kE2m1) return 0;
  return is_e8m0(*parts_.scales) ? 32 : is_e4m3(*parts_.scales) ? quantization.nvfp4_group : 0;
}

Status ScaledTensor::read_factors() {
  const int64_t matrices = num_matrices();
  factors_.assign(static_cast<size_t>(matrices), 1.0F);
  if (parts_.factor == nullptr) return {};
  const TensorView& given = *parts_.factor;
  const int64_t count = given.num_elements();
  if (count != 1 && count != matrices) {
    return unfit_shape(given,
                       ", but there is one scale for each matrix of '" + parts_.codes->name + "'");
  }
  FT_RETURN_IF_ERROR(check_finite(given));
  std::vector<std::byte> raw;
  FT_RETURN_IF_ERROR(foretoken::read_elements(given, 0, count, DType::kF32, factors_.data(), raw));
  if (count == 1) std::fill(factors_.begin(), factors_.end(), factors_[0]);
  const bool zero =
      parts_.divides && std::find(factors_.begin(), factors_.end(), 0.0F) != factors_.end();
  if (!zero) return {};
  return invalid_argument(given.file + ": tensor '" + given.name +
                          "' is 0, by which scales are to be divided; fetch the checkpoint again");
}

Status ScaledTensor::read_line(int64_t index, BlockLine* line, std::vector<std::byte>& raw) const {
  line->index = index;
  line->scales.resize(static_cast<size_t>(across_));
  const int64_t first = lines_ == 0 ? 0 : index * across_;
  FT_RETURN_IF_ERROR(read_scales(*parts_.scales, first, across_, line->scales.data(), raw));
  if (parts_.factor != nullptr) {
    const float factor = factors_[static_cast<size_t>(lines_ == 0 ? 0 : index / lines_)];
    for (float& scale : line->scales) scale = parts_.divides ? scale / factor : scale * factor;
  }
  if (parts_.inverse) {
    for (float& scale : line->scales) scale = 1 / scale;
  }
  line->zeros.assign(static_cast<size_t>(across_), 0.0F);
  if (parts_.zeros == nullptr) return {};
  return read_scales(*parts_.zeros, first, across_, line->zeros.data(), raw);
}

// As signed integers of eight bits.
Status ScaledTensor::read_ternary(int64_t first, int64_t count, std::vector<std::byte>& raw) const {
  const int64_t quarter = rows_ / 4;
  raw.resize(static_cast<size_t>(count));
  for (int64_t done = 0; done < count;) {
    const int64_t row = (first + done) / cols_, col = (first + done) % cols_;
    const int64_t here = std::min(cols_ - col, count - done);
    std::byte* out = raw.data() + done;
    FT_RETURN_IF_ERROR(parts_.codes->read(row % quarter * cols_ + col, here, out));
    const auto shift = static_cast<int>(2 * (row / quarter));
    for (int64_t i = 0; i < here; ++i) {
      out[i] = static_cast<std::byte>(static_cast<int>(out[i] >> shift & std::byte{3}) - 1);
    }
    done += here;
  }
  return {};
}

// A byte for each code.
Status ScaledTensor::read_paired_rows(int64_t first, int64_t count,
                                      std::vector<std::byte>& raw) const {
  raw.resize(static_cast<size_t>(count));
  for (int64_t done = 0; done < count;) {
    const int64_t row = (first + done) / cols_, col = (first + done) % cols_;
    const int64_t here = std::min(cols_ - col, count - done);
    std::byte* out = raw.data() + done;
    FT_RETURN_IF_ERROR(parts_.codes->read(row / 2 * cols_ + col, here, out));
    for (int64_t i = 0; i < here && row % 2 == 1; ++i) out[i] >>= 4;
    done += here;
  }
  return {};
}

// The bytes that hold elements [first, first + count).
Status ScaledTensor::read_codes(int64_t first, int64_t count, std::vector<std::byte>& raw) const {
  const bool paired = parts_.type == CodeType::kE2m1OfRows || parts_.type == CodeType::kInt4OfRows;
  if (paired) return read_paired_rows(first, count, raw);
  if (parts_.type == CodeType::kTernary) return read_ternary(first, count, raw);
  const int64_t in_byte = parts_.type == CodeType::kE2m1 ? 2 : 1;
  const int64_t begin = first / in_byte, end = (first + count + in_byte - 1) / in_byte;
  raw.resize(static_cast<size_t>(end - begin));
  return parts_.codes->read(begin, end - begin, raw.data());
}

Status ScaledTensor::read_elements(int64_t first, int64_t count, DType dtype, void* to,
                                   std::vector<std::byte>& raw) const {
  FT_RETURN_IF_ERROR(read_codes(first, count, raw));
  const std::array<float, 256>& values = byte_values(parts_.type);
  const bool halves = parts_.type == CodeType::kE2m1;
  const auto code_at = [&](int64_t i) {
    const int64_t at = halves ? first % 2 + i : i;
    const auto byte = static_cast<uint8_t>(raw[static_cast<size_t>(halves ? at / 2 : at)]);
    return halves ? e2m1_value(at % 2 == 0 ? byte & 15 : byte >> 4) : values[byte];
  };
  BlockLine line;
  std::vector<std::byte> scratch;
  for (int64_t done = 0; done < count;) {
    const int64_t row = (first + done) / cols_, col = (first + done) % cols_;
    if (line_of(row) != line.index) FT_RETURN_IF_ERROR(read_line(line_of(row), &line, scratch));
    const int64_t end_of_block = std::min((col / block_cols_ + 1) * block_cols_, cols_);
    const int64_t here = std::min(end_of_block - col, count - done);
    const float scale = line.scales[static_cast<size_t>(col / block_cols_)];
    const float zero = line.zeros[static_cast<size_t>(col / block_cols_)];
    for (int64_t i = done; i < done + here; ++i) {
      const float value = (code_at(i) - zero) * scale;
      store_element(value, dtype, to, i);
    }
    done += here;
  }
  return {};
}

int64_t ScaledTensor::num_matrices() const {
  int64_t count = 1;
  for (size_t i = 0; i + 2 < shape_.size(); ++i) count *= shape_[i];
  return count;
}

Result<bool> ScaledTensor::has_half_scales() const {
  const float step = parts_.type == CodeType::kE2m1 ? 0.5F : 1.0F;
  BlockLine line;
  std::vector<std::byte> raw;
  const auto num_lines = static_cast<int64_t>(factors_.size()) * lines_;
  for (int64_t index = 0; index < num_lines; ++index) {
    FT_RETURN_IF_ERROR(read_line(index, &line, raw));
    const bool fits = std::all_of(line.scales.begin(), line.scales.end(),
                                  [=](float scale) { return is_half(scale * step); });
    if (!fits) return false;
  }
  return true;
}

// The same of many powers of two at once. Groups of zeros have any.
Result<bool> ScaledTensor::has_half_powers() const {
  constexpr int64_t kAtOnce = 1 << 20;
  const int64_t all = parts_.scales->num_elements();
  std::vector<std::byte> powers;
  for (int64_t first = 0; first < all; first += kAtOnce) {
    powers.resize(static_cast<size_t>(std::min(kAtOnce, all - first)));
    FT_RETURN_IF_ERROR(parts_.scales->read(first, std::ssize(powers), powers.data()));
    for (size_t i = 0; i < powers.size(); ++i) {
      if (is_half(e8m0_value(static_cast<uint8_t>(powers[i])) * 0.5F)) continue;
      const int64_t group = first + static_cast<int64_t>(i);
      FT_ASSIGN_OR_RETURN(const bool zero, is_zero(group * block_cols_, block_cols_));
      if (!zero) return false;
    }
  }
  return true;
}

// Whether the codes of elements [first, first + count) stand for zeros of either sign.
Result<bool> ScaledTensor::is_zero(int64_t first, int64_t count) const {
  std::vector<std::byte> codes;
  FT_RETURN_IF_ERROR(read_codes(first, count, codes));
  return std::all_of(codes.begin(), codes.end(),
                     [](std::byte pair) { return (pair & std::byte{0x77}) == std::byte{0}; });
}

// Floats of eight bits have floats as scales. Integers, and floats of four bits, of which the table
// has the doubles, fit forms that exist where their scales are halves. Looking ends at the first
// one that is not. Long groups become several with one scale, so that ranks can cut between them.
Status ScaledTensor::find_form() {
  const bool is_widened = parts_.type == CodeType::kE2m1OfRows ||
                          parts_.type == CodeType::kInt4OfRows || parts_.type == CodeType::kE5m2;
  if (lines_ == 0 || is_widened) return {};
  if (parts_.type == CodeType::kE4m3) {
    const bool by_row = across_ == 1;
    if (!by_row && cols_ % block_cols_ != 0) return {};
    const auto own = static_cast<int32_t>(by_row ? 1 : block_cols_);
    form_ =
        QuantForm{8, by_row ? GroupScale::kFloatOfRow : GroupScale::kFloat, own, CodeTable::kE4m3};
    return {};
  }
  const int64_t group = std::min(block_cols_, kFormGroup);
  if (block_cols_ % group != 0 || cols_ % block_cols_ != 0) return {};
  const bool has_powers = is_e8m0(*parts_.scales) && parts_.factor == nullptr &&
                          parts_.type == CodeType::kE2m1 && block_rows_ == 1;
  FT_ASSIGN_OR_RETURN(const bool fits, has_powers ? has_half_powers() : has_half_scales());
  if (!fits && has_float8_scales()) {
    form_ = QuantForm{4, GroupScale::kRowAndByte, static_cast<int32_t>(group), CodeTable::kE2m1};
  }
  if (!fits) return {};
  form_ = QuantForm{8, GroupScale::kHalf, static_cast<int32_t>(group)};
  if (parts_.zeros != nullptr) form_->scale = GroupScale::kHalfAndZero;
  if (parts_.type == CodeType::kE2m1) {
    form_->bits = 4;
    form_->table = CodeTable::kE2m1;
    form_->powers = has_powers;
  }
  return {};
}

// Whether codes are scaled as NVFP4 has them: a float for all, one of eight bits for each group.
bool ScaledTensor::has_float8_scales() const {
  return parts_.type == CodeType::kE2m1 && is_e4m3(*parts_.scales) && block_rows_ == 1 &&
         !parts_.inverse && parts_.zeros == nullptr;
}

// The scales of a row of kRowAndByte; codes are doubled.
Status ScaledTensor::read_row_and_bytes(int64_t row, std::byte* to) const {
  const float factor = factors_[static_cast<size_t>(row / rows_)];
  const float scale = 0.5F * (parts_.divides ? 1 / factor : factor);
  std::memcpy(to, &scale, sizeof scale);
  std::vector<std::byte> bytes(static_cast<size_t>(across_));
  FT_RETURN_IF_ERROR(parts_.scales->read(row * across_, across_, bytes.data()));
  to += sizeof scale;
  for (int64_t i = 0; i < cols_; i += form_->group) {
    *to++ = bytes[static_cast<size_t>(i / block_cols_)];
  }
  return {};
}

// Rows of floats of eight bits.
Status ScaledTensor::read_floats(int64_t first, int64_t count, std::byte* to) const {
  BlockLine line;
  std::vector<std::byte> raw, scratch;
  FT_RETURN_IF_ERROR(read_codes(first * cols_, count * cols_, raw));
  for (int64_t row = first; row < first + count; ++row) {
    std::memcpy(to, raw.data() + (row - first) * cols_, static_cast<size_t>(cols_));
    to += cols_;
    if (line_of(row) != line.index) FT_RETURN_IF_ERROR(read_line(line_of(row), &line, scratch));
    std::memcpy(to, line.scales.data(), line.scales.size() * sizeof(float));
    to += line.scales.size() * sizeof(float);
  }
  return {};
}

Status ScaledTensor::read_quantized(int64_t first, int64_t count, std::byte* to) const {
  if (parts_.type == CodeType::kE4m3) return read_floats(first, count, to);
  const bool pairs = parts_.type == CodeType::kE2m1;
  BlockLine line;
  std::vector<std::byte> raw, scratch;
  for (int64_t row = first; row < first + count; ++row) {
    FT_RETURN_IF_ERROR(read_codes(row * cols_, cols_, raw));
    for (int64_t i = 0; i < cols_; ++i) {
      const auto byte = static_cast<uint8_t>(raw[static_cast<size_t>(pairs ? i / 2 : i)]);
      const uint8_t half = i % 2 == 0 ? byte & 15 : byte >> 4;
      to[i] = static_cast<std::byte>(pairs ? half : byte ^ 0x80u);
    }
    to += cols_;
    if (form_->scale == GroupScale::kRowAndByte) {
      FT_RETURN_IF_ERROR(read_row_and_bytes(row, to));
      to += quantized_row_bytes(*form_, cols_) - cols_;
      continue;
    }
    if (line_of(row) != line.index) FT_RETURN_IF_ERROR(read_line(line_of(row), &line, scratch));
    for (int64_t i = 0; i < cols_; i += form_->group, to += sizeof(uint16_t)) {
      const float scale = line.scales[static_cast<size_t>(i / block_cols_)] * (pairs ? 0.5F : 1.0F);
      // Powers of two that are no halves belong to zeros.
      const uint16_t half = is_half(scale) ? half_from_float(scale) : uint16_t{0};
      std::memcpy(to, &half, sizeof half);
    }
    if (form_->scale != GroupScale::kHalfAndZero) continue;
    for (int64_t i = 0; i < cols_; i += form_->group) {
      const float zero = line.zeros[static_cast<size_t>(i / block_cols_)];
      *to++ = static_cast<std::byte>(static_cast<int>(zero) + 128);
    }
  }
  return {};
}

}  // namespace foretoken
