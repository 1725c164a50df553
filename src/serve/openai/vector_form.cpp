#include "serve/openai/vector_form.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/bfloat16.h"
#include "base/half.h"

namespace foretoken {
namespace {

template <typename T>
void append_bytes(T value, bool big_endian, std::string* bytes) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    const size_t place = big_endian ? sizeof(T) - 1 - i : i;
    *bytes += static_cast<char>(value >> (8 * place) & 0xff);
  }
}

bool is_of_signs(VectorForm::Type type) {
  return type == VectorForm::Type::kSigns || type == VectorForm::Type::kSignsLess128;
}

// Where their number is no multiple of eight, the last byte ends with zeros.
std::vector<int> signs_of(const std::vector<float>& values, VectorForm::Type type) {
  std::vector<int> bytes((values.size() + 7) / 8);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] > 0) bytes[i / 8] |= 128 >> i % 8;
  }
  if (type == VectorForm::Type::kSigns) return bytes;
  for (int& byte : bytes) byte -= 128;
  return bytes;
}

std::string packed_values(const std::vector<float>& values, const VectorForm& form) {
  std::string bytes;
  if (is_of_signs(form.type)) {
    for (const int byte : signs_of(values, form.type)) bytes += static_cast<char>(byte);
    return bytes;
  }
  bytes.reserve(values.size() * sizeof(float));
  for (const float value : values) {
    switch (form.type) {
      case VectorForm::Type::kFloat32:
        append_bytes(std::bit_cast<uint32_t>(value), form.big_endian, &bytes);
        break;
      case VectorForm::Type::kFloat16:
        append_bytes(half_from_float(value), form.big_endian, &bytes);
        break;
      case VectorForm::Type::kBfloat16:
        append_bytes(bf16_from_float(value), form.big_endian, &bytes);
        break;
      default:
        break;
    }
  }
  return bytes;
}

std::string base64_of(const std::string& bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) text += k > count ? '=' : kDigits[group >> (18 - 6 * k) & 63];
  }
  return text;
}

// Voyage's name of a type beside "encoding_format".
void read_output_dtype(JsonFields& fields, VectorForm* form) {
  std::string type = "float";
  fields.read("output_dtype", &type);
  if (type == "float") return;
  const std::optional<VectorForm::Type> signs = type_of_signs(type);
  if (!signs) {
    fields.fail("'output_dtype' must be \"float\", \"binary\" or \"ubinary\" here, not \"" + type +
                "\"; eight bits an element want ranges of a model's own");
    return;
  }
  form->type = *signs;
}

}  // namespace

std::optional<VectorForm::Type> type_of_signs(std::string_view name) {
  if (name == "ubinary") return VectorForm::Type::kSigns;
  if (name == "binary") return VectorForm::Type::kSignsLess128;
  return std::nullopt;
}

VectorForm read_vector_form(JsonFields& fields) {
  VectorForm form;
  std::string format = "float";
  fields.read("encoding_format", &format);
  const std::optional<VectorForm::Type> signs = type_of_signs(format);
  if (format != "float" && format != "base64" && !signs) {
    fields.fail(
        "'encoding_format' must be \"float\", \"base64\", \"binary\" or \"ubinary\", not \"" +
        format + "\"");
  }
  form.base64 = format == "base64";
  std::string type = "float32";
  fields.read("embed_dtype", &type);
  if (type == "float16") {
    form.type = VectorForm::Type::kFloat16;
  } else if (type == "bfloat16") {
    form.type = VectorForm::Type::kBfloat16;
  } else if (type != "float32") {
    fields.fail("'embed_dtype' must be \"float32\", \"float16\" or \"bfloat16\" here, not \"" +
                type + "\"");
  }
  std::string order = "native";
  fields.read("endianness", &order);
  if (order != "native" && order != "little" && order != "big") {
    fields.fail("'endianness' must be \"native\", \"little\" or \"big\", not \"" + order + "\"");
  }
  form.big_endian = order == "big";
  read_output_dtype(fields, &form);
  if (signs) form.type = *signs;
  return form;
}

nlohmann::ordered_json vector_json(const std::vector<float>& values, const VectorForm& form) {
  if (!form.base64 && is_of_signs(form.type)) return signs_of(values, form.type);
  if (!form.base64) return values;
  return base64_of(packed_values(values, form));
}

}  // namespace foretoken
