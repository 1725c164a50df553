#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretoken::net {

// Names and values, in the order of the message.
using Headers = std::vector<std::pair<std::string, std::string>>;

// The value of the first header of that name, whatever the case of its letters; empty without one.
std::string_view header_of(const Headers& headers, std::string_view name);

}  // namespace foretoken::net
