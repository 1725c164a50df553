#include "model/files/forms/float_zero_tensor.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/bfloat16.h"
#include "base/half.h"
#include "model/files/forms/convert.h"

namespace foretoken {
namespace {

constexpr std::string_view kHqqCodes = ".W_q";
constexpr std::string_view kTorchAoCodes = "._weight_qdata";
// What else HQQ writes beside a matrix, of which nothing depends here.
constexpr std::string_view kHqqSettings[] = {
    ".group_size",   ".unpack_view_dtype", ".view_as_float",      ".quant_scale",
    ".quant_zero",   ".offload_meta",      ".encoded_state_dict", ".stores_quant_config",
    ".channel_wise", ".optimize",          ".round_zero"};
constexpr int64_t kMaxText = 64;
constexpr int64_t kCodesInWord = 10;  // of three bits, in 32

Status zero_misfit(const TensorView& tensor) {
  return invalid_argument(tensor.file + ": tensor '" + tensor.name + "' is " + tensor.dtype_name +
                          " " + tensor.shape_text() +
                          ", which does not fit the quantised matrix that it is a part of; fetch "
                          "the checkpoint again, or use the model as it was before");
}

// A number in a tensor of one element.
Result<int64_t> number_in(const TensorView& tensor) {
  if (tensor.num_elements() != 1) return zero_misfit(tensor);
  if (tensor.dtype_name == "U8") {
    uint8_t byte = 0;
    FT_RETURN_IF_ERROR(tensor.read(0, 1, &byte));
    return int64_t{byte};
  }
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> values, read_integers(tensor));
  return values[0];
}

Result<std::string> text_in(const TensorView& tensor) {
  if (tensor.dtype_name != "U8" || tensor.num_bytes > kMaxText) return zero_misfit(tensor);
  std::string text(static_cast<size_t>(tensor.num_bytes), ' ');
  FT_RETURN_IF_ERROR(tensor.read(0, tensor.num_bytes, text.data()));
  return text;
}

// Whether a setting of HQQ's is there and true.
Result<bool> is_set(const std::map<std::string, const TensorView*>& tensors,
                    const std::string& name) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) return false;
  FT_ASSIGN_OR_RETURN(const int64_t value, number_in(*found->second));
  return value != 0;
}

Status check_hqq(const std::map<std::string, const TensorView*>& tensors, const std::string& base,
                 const TensorView& codes) {
  for (const char* setting : {".quant_scale", ".quant_zero", ".view_as_float"}) {
    FT_ASSIGN_OR_RETURN(const bool set, is_set(tensors, base + setting));
    if (!set) continue;
    return unsupported(codes.file + ": HQQ wrote '" + base + "' with " + (setting + 1) +
                       ", which is not read; quantise the model with quant_scale, quant_zero and "
                       "view_as_float off, or use the model as it was before");
  }
  return {};
}

bool is_float(const TensorView* tensor) {
  return tensor != nullptr &&
         (tensor->dtype == FileDType::kF32 || tensor->dtype == FileDType::kBF16 ||
          tensor->dtype == FileDType::kF16);
}

}  // namespace

Result<std::vector<FloatZeroParts>> find_float_zeros(
    const std::map<std::string, const TensorView*>& tensors) {
  std::vector<FloatZeroParts> found;
  for (const auto& [name, tensor] : tensors) {
    const bool is_hqq = name.ends_with(kHqqCodes);
    if (!is_hqq && !name.ends_with(kTorchAoCodes)) continue;
    FloatZeroParts parts;
    const std::string base =
        name.substr(0, name.size() - (is_hqq ? kHqqCodes : kTorchAoCodes).size());
    const auto take = [&](std::string_view ending) -> const TensorView* {
      const auto other = tensors.find(base + std::string(ending));
      if (other == tensors.end()) return nullptr;
      parts.names.push_back(other->first);
      return other->second;
    };
    parts.name = base + ".weight";
    parts.codes = take(is_hqq ? kHqqCodes : kTorchAoCodes);
    if (is_hqq) {
      FT_RETURN_IF_ERROR(check_hqq(tensors, base, *tensor));
      parts.scales = take(".scale");
      parts.zeros = take(".zero");
      parts.shape = take(".shape");
      parts.bits = take(".nbits");
      parts.axis = take(".axis");
      parts.packing = take(".packing");
      parts.compute_type = take(".compute_dtype");
      for (const std::string_view setting : kHqqSettings) take(setting);
    } else {
      parts.scales = take("._weight_scale");
      parts.zeros = take("._weight_zero_point");
      parts.column_scales = take("._weight_act_pre_scale");
      if (!is_float(parts.zeros)) continue;  // integers: model/files/forms/torchao_names.h
    }
    const bool whole = parts.scales != nullptr && parts.zeros != nullptr &&
                       (!is_hqq || (parts.shape != nullptr && parts.bits != nullptr &&
                                    parts.axis != nullptr && parts.packing != nullptr));
    if (!whole) {
      return invalid_argument(tensor->file + ": the quantised matrix '" + name +
                              "' lacks its scale or zero, or HQQ's shape, nbits, axis or packing; "
                              "fetch the checkpoint again");
    }
    found.push_back(std::move(parts));
  }
  return found;
}

Result<FloatZeroTensor> FloatZeroTensor::create(const FloatZeroParts& parts) {
  FloatZeroTensor tensor(parts);
  FT_RETURN_IF_ERROR(tensor.is_hqq() ? tensor.read_hqq() : tensor.read_torchao());
  FT_RETURN_IF_ERROR(check_finite(*parts.scales));
  FT_RETURN_IF_ERROR(check_finite(*parts.zeros));
  return tensor;
}

Status FloatZeroTensor::read_hqq() {
  const TensorView& codes = *parts_.codes;
  FT_ASSIGN_OR_RETURN(shape_, read_integers(*parts_.shape));
  FT_ASSIGN_OR_RETURN(const int64_t bits, number_in(*parts_.bits));
  FT_ASSIGN_OR_RETURN(const int64_t axis, number_in(*parts_.axis));
  FT_ASSIGN_OR_RETURN(const std::string packing, text_in(*parts_.packing));
  if (parts_.compute_type != nullptr) {
    FT_ASSIGN_OR_RETURN(const std::string type, text_in(*parts_.compute_type));
    if (type != "torch.float16" && type != "torch.bfloat16" && type != "torch.float32") {
      return zero_misfit(*parts_.compute_type);
    }
    compute_ = type == "torch.float16"    ? FileDType::kF16
               : type == "torch.bfloat16" ? FileDType::kBF16
                                          : FileDType::kF32;
  }
  const bool has_words = bits == 3;
  const bool is_known = bits == 1 || bits == 2 || bits == 3 || bits == 4 || bits == 8;
  const std::string usual = std::to_string(bits) + (has_words ? "bit_32" : "bit_u8");
  if (!is_known || packing != usual) return zero_misfit(*parts_.packing);
  const bool fits = shape_.size() == 2 && shape_[0] >= 1 && shape_[0] <= 1 << 30 &&
                    shape_[1] >= 1 && shape_[1] <= 1 << 30 && (axis == 0 || axis == 1) &&
                    codes.shape.size() == 2 && codes.num_elements() > 0 &&
                    codes.dtype_name == (has_words ? "I32" : "U8");
  if (!fits) return zero_misfit(codes);
  bits_ = static_cast<int32_t>(bits);
  lines_ = codes.shape[0];
  group_ = codes.shape[1];
  by_rows_ = axis == 1;
  const int64_t all = shape_[0] * shape_[1], parts = has_words ? kCodesInWord : 8 / bits;
  const int64_t rows = all / group_;
  const bool whole =
      all % group_ == 0 && (rows + parts - 1) / parts == lines_ && (has_words || rows % parts == 0);
  if (!whole) return zero_misfit(codes);
  for (const TensorView* each : {parts_.scales, parts_.zeros}) {
    if (!is_float(each) || each->num_elements() != (by_rows_ ? rows : group_)) {
      return zero_misfit(*each);
    }
  }
  return {};
}

Status FloatZeroTensor::read_torchao() {
  const TensorView& codes = *parts_.codes;
  const TensorView& scales = *parts_.scales;
  const bool fits = codes.shape.size() == 2 && codes.num_elements() > 0 &&
                    (codes.dtype_name == "I8" || codes.dtype_name == "U8") && is_float(&scales) &&
                    scales.shape.size() == 2 && scales.shape == parts_.zeros->shape &&
                    scales.shape[0] > 0 && scales.shape[1] == codes.shape[0] &&
                    codes.shape[1] * 2 % scales.shape[0] == 0;
  if (!fits) {
    return unsupported(codes.file + ": tensor '" + codes.name + "' is " + codes.dtype_name + " " +
                       codes.shape_text() + " with scales " + scales.shape_text() +
                       ", a packing of torchao that is not read; quantise the model with "
                       "int4_packing_format plain, or use the model as it was before");
  }
  shape_ = {codes.shape[0], codes.shape[1] * 2};
  const int64_t groups = scales.shape[0], rows = shape_[0];
  group_ = shape_[1] / groups;
  std::vector<float> lines(static_cast<size_t>(groups * rows));
  std::vector<std::byte> raw;
  for (const TensorView* each : {parts_.scales, parts_.zeros}) {
    FT_RETURN_IF_ERROR(
        foretoken::read_elements(*each, 0, groups * rows, DType::kF32, lines.data(), raw));
    std::vector<float>& turned = each == parts_.scales ? scales_ : zeros_;
    turned.resize(lines.size());
    for (int64_t i = 0; i < groups * rows; ++i) {
      turned[static_cast<size_t>(i % rows * groups + i / rows)] = lines[static_cast<size_t>(i)];
    }
  }
  return {};
}

float FloatZeroTensor::rounded(float value) const {
  if (compute_ == FileDType::kF16) return half_to_float(half_from_float(value));
  return compute_ == FileDType::kBF16 ? bf16_to_float(bf16_from_float(value)) : value;
}

// Elements of one part of HQQ's codes, and of one line of them where a scale runs along lines.
Status FloatZeroTensor::read_run(int64_t first, int64_t count, DType dtype, void* to, int64_t at,
                                 std::vector<std::byte>& raw) const {
  const int64_t size = bits_ == 3 ? 4 : 1, part = first / (lines_ * group_);
  const int64_t begin = by_rows_ ? first / group_ : first % group_;
  const int64_t num_scales = by_rows_ ? (first + count - 1) / group_ - begin + 1 : count;
  std::vector<float> scales(static_cast<size_t>(num_scales)), zeros(scales.size());
  FT_RETURN_IF_ERROR(
      foretoken::read_elements(*parts_.scales, begin, num_scales, DType::kF32, scales.data(), raw));
  FT_RETURN_IF_ERROR(
      foretoken::read_elements(*parts_.zeros, begin, num_scales, DType::kF32, zeros.data(), raw));
  raw.resize(static_cast<size_t>(count * size));
  FT_RETURN_IF_ERROR(
      parts_.codes->read((first - part * lines_ * group_) * size, count * size, raw.data()));
  const int64_t num_parts = bits_ == 3 ? kCodesInWord : 8 / bits_;
  const auto shift = static_cast<uint32_t>(bits_ * (num_parts - 1 - part));
  const uint32_t mask = (1u << bits_) - 1;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t word = 0;
    std::memcpy(&word, raw.data() + i * size, static_cast<size_t>(size));
    const auto code = static_cast<float>(word >> shift & mask);
    const auto group = static_cast<size_t>(by_rows_ ? (first + i) / group_ - begin : i);
    const float value = rounded(rounded(code - zeros[group]) * scales[group]);
    store_element(value, dtype, to, at + i);
  }
  return {};
}

// Elements of one row of torchao's.
Status FloatZeroTensor::read_line(int64_t first, int64_t count, DType dtype, void* to, int64_t at,
                                  std::vector<std::byte>& raw) const {
  const int64_t begin = first / 2, end = (first + count + 1) / 2;
  raw.resize(static_cast<size_t>(end - begin));
  FT_RETURN_IF_ERROR(parts_.codes->read(begin, end - begin, raw.data()));
  for (int64_t i = first; i < first + count; ++i) {
    const auto byte = static_cast<uint8_t>(raw[static_cast<size_t>(i / 2 - begin)]);
    const int code = ((i % 2 == 0 ? byte & 15 : byte >> 4) ^ 8) - 8;
    const auto group = static_cast<size_t>(i / group_);
    const float product = static_cast<float>(code) * scales_[group];
    store_element(product + zeros_[group], dtype, to, at + i - first);
  }
  return {};
}

Status FloatZeroTensor::read_elements(int64_t first, int64_t count, DType dtype, void* to,
                                      std::vector<std::byte>& raw) const {
  const int64_t part = is_hqq() ? lines_ * group_ : count;
  for (int64_t done = 0; done < count;) {
    const int64_t at = first + done;
    int64_t here = count - done;
    if (is_hqq()) here = std::min(here, part - at % part);
    if (is_hqq() && !by_rows_) here = std::min(here, group_ - at % group_);
    FT_RETURN_IF_ERROR(is_hqq() ? read_run(at, here, dtype, to, done, raw)
                                : read_line(at, here, dtype, to, done, raw));
    done += here;
  }
  return {};
}

}  // namespace foretoken
