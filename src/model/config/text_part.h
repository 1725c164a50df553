#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "base/result.h"

namespace foretoken {

// A model around a decoder of another family, with towers for images or speech, of which the
// decoder alone is read.
struct WrappedFamily {
  const char* architecture;  // in the `architectures` of a config.json
  const char* description;   // for listings
  // Whose decoder it is where the fields lie beside the towers'; null: they are an object of their
  // own, which names its family.
  const char* family = nullptr;
};

std::span<const WrappedFamily> wrapped_families();

// What a config.json says of the decoder of a wrapped family, as if it were a file of that family's
// own, with `is_text_part`; any other file as it is. Unsupported names a family that does not load.
Result<nlohmann::json> text_part_of(const nlohmann::json& file, const std::string& where);

// `overrides` for such a part: what they say of the decoder in an object of its own, too, lies
// beside the rest. For any other file they are as they were.
nlohmann::json text_overrides(const nlohmann::json& file, const nlohmann::json& overrides);

}  // namespace foretoken
