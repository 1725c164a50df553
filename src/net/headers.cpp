#include "net/headers.h"

#include <strings.h>

#include <algorithm>

namespace foretoken::net {

std::string_view header_of(const Headers& headers, std::string_view name) {
  const auto found = std::find_if(headers.begin(), headers.end(), [name](const auto& header) {
    return header.first.size() == name.size() &&
           strncasecmp(header.first.data(), name.data(), name.size()) == 0;
  });
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace foretoken::net
