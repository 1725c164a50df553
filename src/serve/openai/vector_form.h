#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "serve/fields/json_fields.h"

namespace foretoken {

// How an answer writes vectors: as numbers, or as base64 of values of one type.
struct VectorForm {
  enum class Type : uint8_t { kFloat32, kFloat16, kBfloat16 };

  bool base64 = false;
  Type type = Type::kFloat32;  // of base64
  bool big_endian = false;     // of base64
};

// Reads OpenAI's "encoding_format" and vLLM's "embed_dtype" and "endianness"; what is wrong with
// them becomes the status of `fields`.
VectorForm read_vector_form(JsonFields& fields);

nlohmann::ordered_json vector_json(const std::vector<float>& values, const VectorForm& form);

}  // namespace foretoken
