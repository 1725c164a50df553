#pragma once
#include <nlohmann/json.hpp>

#include "config/sampling_field.h"

namespace foretoken {

// A text or a list of texts, none of them empty.
inline constexpr const char* kTextsSchema =
    R"({"anyOf":[{"type":"string","minLength":1},
        {"type":"array","items":{"type":"string","minLength":1},"maxItems":256}]})";
inline constexpr const char* kSeedSchema =
    R"({"type":"integer","minimum":-9223372036854775808,"maximum":18446744073709551615})";

// The JSON schema of a field of sampling, of its type and its range.
nlohmann::ordered_json sampling_schema(const SamplingField& field);

// The same for routes that take the nearest value in range (LlamaReading::kClamped).
nlohmann::ordered_json clamped_schema(const SamplingField& field);

}  // namespace foretoken
