#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "serve/fields/json_fields.h"

namespace foretoken {

// How an answer writes vectors: as numbers, or as base64 of values of one type. Signs are a bit for
// each element, 1 where it is above 0, eight of them a number, the first one highest: from 0 to 255
// (Cohere's, Jina's and Voyage's ubinary), or that less 128 (their binary).
struct VectorForm {
  enum class Type : uint8_t { kFloat32, kFloat16, kBfloat16, kSigns, kSignsLess128 };

  bool base64 = false;
  Type type = Type::kFloat32;  // as numbers float32 or signs
  bool big_endian = false;     // of base64
};

// Reads OpenAI's "encoding_format", also Jina's "binary" and "ubinary" there, vLLM's "embed_dtype"
// and "endianness" and Voyage's "output_dtype"; what is wrong with them becomes the status of
// `fields`.
VectorForm read_vector_form(JsonFields& fields);

// The type that a service calls "binary" or "ubinary"; none: another word.
std::optional<VectorForm::Type> type_of_signs(std::string_view name);

nlohmann::ordered_json vector_json(const std::vector<float>& values, const VectorForm& form);

}  // namespace foretoken
