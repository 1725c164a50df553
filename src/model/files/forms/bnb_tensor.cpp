#include "model/files/forms/bnb_tensor.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "model/files/forms/convert.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kStateMark = ".quant_state.bitsandbytes__";
constexpr std::string_view kBytesScale = ".SCB";
constexpr float kOneOver127 = 7.874015718698502e-3F;
constexpr int64_t kMaxStateBytes = 4096;

Status bnb_misfit(const TensorView& tensor) {
  return invalid_argument(tensor.file + ": tensor '" + tensor.name + "' is " + tensor.dtype_name +
                          " " + tensor.shape_text() +
                          ", which does not fit the matrix of bitsandbytes that it is a part of; "
                          "fetch the checkpoint again, or name the model as it was before");
}

Status read_floats(const TensorView& tensor, int64_t count, float* out) {
  if (tensor.num_elements() != count || tensor.dtype == FileDType::kOther)
    return bnb_misfit(tensor);
  FT_RETURN_IF_ERROR(check_finite(tensor));
  std::vector<std::byte> raw;
  return read_elements(tensor, 0, count, DType::kF32, out, raw);
}

}  // namespace

Result<std::vector<BnbParts>> find_bnb(const std::map<std::string, const TensorView*>& tensors) {
  std::vector<BnbParts> found;
  for (const auto& [name, tensor] : tensors) {
    const size_t mark = name.find(kStateMark);
    const bool four = mark != std::string::npos;
    if (!four && !name.ends_with(kBytesScale)) continue;
    BnbParts parts;
    const auto take = [&](const std::string& part) -> const TensorView* {
      const auto other = tensors.find(part);
      if (other == tensors.end()) return nullptr;
      parts.names.push_back(part);
      return other->second;
    };
    parts.name =
        four ? name.substr(0, mark) : name.substr(0, name.size() - kBytesScale.size()) + ".weight";
    parts.codes = take(parts.name);
    if (four) {
      parts.state = take(name);
      parts.scales = take(parts.name + ".absmax");
      parts.table = take(parts.name + ".quant_map");
      parts.nested_scales = take(parts.name + ".nested_absmax");
      parts.nested_table = take(parts.name + ".nested_quant_map");
    } else {
      parts.scales = take(name);
      parts.order = take(parts.name + "_format");
    }
    const bool whole = parts.codes != nullptr && parts.scales != nullptr &&
                       (!four || parts.table != nullptr) &&
                       (parts.nested_scales == nullptr) == (parts.nested_table == nullptr);
    if (!whole) {
      return invalid_argument(tensor->file + ": the matrix '" + parts.name +
                              "' of bitsandbytes lacks its codes, absmax or quant_map; fetch the "
                              "checkpoint again");
    }
    found.push_back(std::move(parts));
  }
  return found;
}

Result<BnbTensor> BnbTensor::create(const BnbParts& parts) {
  BnbTensor tensor(parts);
  const TensorView& codes = *parts.codes;
  if (tensor.has_four_bits()) {
    FT_RETURN_IF_ERROR(tensor.read_state());
    if (codes.dtype_name != "U8") return bnb_misfit(codes);
    FT_RETURN_IF_ERROR(read_floats(*parts.table, std::ssize(tensor.table_), tensor.table_.data()));
  } else {
    if (codes.dtype_name != "I8" || codes.shape.size() != 2 || codes.num_elements() == 0) {
      return bnb_misfit(codes);
    }
    if (parts.order != nullptr) {
      std::byte order{1};
      if (parts.order->num_bytes != 1) return bnb_misfit(*parts.order);
      FT_RETURN_IF_ERROR(parts.order->read(0, 1, &order));
      if (order != std::byte{0}) return bnb_misfit(*parts.order);
    }
    tensor.shape_ = codes.shape;
    tensor.block_ = codes.shape[1];
  }
  FT_RETURN_IF_ERROR(tensor.read_scales());
  return tensor;
}

// The state's JSON: {"blocksize": 64, "shape": [n, k], "nested_blocksize": 256, ...}.
Status BnbTensor::read_state() {
  const TensorView& state = *parts_.state;
  if (state.dtype_name != "U8" || state.num_bytes > kMaxStateBytes) return bnb_misfit(state);
  std::string text(static_cast<size_t>(state.num_bytes), ' ');
  FT_RETURN_IF_ERROR(state.read(0, state.num_bytes, text.data()));
  const Json json = Json::parse(text, nullptr, false);
  const auto size = [&](const char* name) -> int64_t {
    const bool known = json.is_object() && json.contains(name) && json[name].is_number_integer();
    const double value = known ? json[name].get<double>() : 0;
    return value >= 1 && value <= 65536 ? static_cast<int64_t>(value) : 0;
  };
  block_ = size("blocksize");
  nested_block_ = size("nested_blocksize");
  const Json shape = json.is_object() ? json.value("shape", Json()) : Json();
  const bool nested = parts_.nested_scales != nullptr;
  bool fits = block_ > 0 && (!nested || nested_block_ > 0) && shape.is_array() && shape.size() == 2;
  for (const Json& side : fits ? shape : Json::array()) {
    fits = fits && side.is_number_unsigned() && side >= 1 && side <= 1 << 30;
    shape_.push_back(fits ? side.get<int64_t>() : 0);
  }
  if (!fits || shape_[0] * shape_[1] != parts_.codes->num_bytes * 2) return bnb_misfit(state);
  if (nested) {
    const Json offset = json.value("nested_offset", Json(0));
    if (!offset.is_number()) return bnb_misfit(state);
    nested_offset_ = offset.get<float>();
  }
  return {};
}

Status BnbTensor::read_scales() {
  const TensorView& given = *parts_.scales;
  const int64_t count = (shape_[0] * shape_[1] + block_ - 1) / block_;
  if (given.num_elements() != count) return bnb_misfit(given);
  scales_.resize(static_cast<size_t>(count));
  if (parts_.nested_scales == nullptr) return read_floats(given, count, scales_.data());
  if (given.dtype_name != "U8") return bnb_misfit(given);
  std::vector<float> table(256);
  std::vector<float> outer(static_cast<size_t>((count + nested_block_ - 1) / nested_block_));
  FT_RETURN_IF_ERROR(read_floats(*parts_.nested_table, 256, table.data()));
  FT_RETURN_IF_ERROR(read_floats(*parts_.nested_scales, std::ssize(outer), outer.data()));
  std::vector<uint8_t> codes(static_cast<size_t>(count));
  FT_RETURN_IF_ERROR(given.read(0, count, codes.data()));
  for (size_t i = 0; i < codes.size(); ++i) {
    const float scaled = table[codes[i]] * outer[i / static_cast<size_t>(nested_block_)];
    scales_[i] = scaled + nested_offset_;
  }
  return {};
}

float BnbTensor::value_at(int64_t element, uint8_t byte) const {
  const float scale = scales_[static_cast<size_t>(element / block_)];
  if (has_four_bits()) return table_[element % 2 == 0 ? byte >> 4 : byte & 15] * scale;
  const float product = static_cast<float>(static_cast<int8_t>(byte)) * scale;
  return product * kOneOver127;
}

Status BnbTensor::read_elements(int64_t first, int64_t count, DType dtype, void* to,
                                std::vector<std::byte>& raw) const {
  const int64_t in_byte = has_four_bits() ? 2 : 1;
  const int64_t begin = first / in_byte, end = (first + count + in_byte - 1) / in_byte;
  raw.resize(static_cast<size_t>(end - begin));
  FT_RETURN_IF_ERROR(parts_.codes->read(begin, end - begin, raw.data()));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t element = first + i;
    const std::byte byte = raw[static_cast<size_t>(element / in_byte - begin)];
    const float value = value_at(element, static_cast<uint8_t>(byte));
    store_element(value, dtype, to, i);
  }
  return {};
}

}  // namespace foretoken
