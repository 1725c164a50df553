#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foretoken {

// Reads a YAML list of flat mappings as a JSON list of objects, keys in the order of the text:
//   - name: value      begins an entry; its other lines stand under the name
//     other: [1, two]  # a list of plain values
//   - {"name": 1}        an entry on one line, which is JSON
// Values are true, false, whole and decimal numbers, texts in quotes, lists of these in brackets,
// and whatever else stands there as a text. A text that is JSON is read as JSON, which is YAML,
// too. InvalidArgument begins with `what` (a file) and the number of the line.
Result<nlohmann::ordered_json> parse_yaml_list(std::string_view text, const std::string& what);

// Of a line: without blanks around it, and up to a # that begins a comment, which stands at the
// beginning or behind a blank, and outside of quotes.
std::string trimmed_line(std::string_view line);
std::string_view before_comment(std::string_view line);

}  // namespace foretoken
