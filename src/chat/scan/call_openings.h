#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// How calls begin in the format of a tool parser, for models that call while they still think: with
// as much behind the marker as words about the format do not have. `names`: the functions that the
// request offers. Empty for formats whose models are not known to do that.
std::vector<std::string> call_openings(std::string_view tool_parser,
                                       const std::vector<std::string>& names);

// What the first call of a text begins with in that format. Empty for formats without a marker, and
// for those whose text is a row of messages.
std::vector<std::string> call_markers(std::string_view tool_parser);

}  // namespace foretoken
