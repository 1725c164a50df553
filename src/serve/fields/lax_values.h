#pragma once
#include <nlohmann/json.hpp>
#include <optional>

namespace foretoken {

// Values in the forms that vLLM takes beside the plain one, which are those of pydantic's lax mode
// (https://docs.pydantic.dev/latest/concepts/conversion_table): numbers as text ("0.7", " 16 ",
// "1_000", "16.0"), true and false as 1 and 0, and 0, 1 and words ("true", "off", "yes") as flags.

// A flag; nothing for other values.
std::optional<bool> lax_flag(const nlohmann::ordered_json& value);

// An integer as a JSON integer; nothing for fractions, other values and what needs more than 64
// bits.
std::optional<nlohmann::ordered_json> lax_integer(const nlohmann::ordered_json& value);

// A finite number; nothing for other values.
std::optional<double> lax_number(const nlohmann::ordered_json& value);

}  // namespace foretoken
