#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace foretoken {

// The JSON value of a YAML value in braces or brackets: {method: ngram, sizes: [1, 2]}. Names need
// no quotes; values are true, false, null, numbers, texts in either quotes, braces and brackets of
// these, and whatever else stands there as a text. Empty: it is none, as an unclosed one.
std::optional<nlohmann::ordered_json> parse_yaml_flow(std::string_view text);

// How many braces and brackets of `text` are open at its end, outside of quotes.
int open_brackets(std::string_view text);

}  // namespace foretoken
