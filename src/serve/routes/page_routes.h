#pragma once
#include <string_view>
#include <vector>

#include "http/message/exchange.h"

namespace foretoken {

// A file of the chat page, as it was when the program was built.
struct PageFile {
  std::string_view path;  // "/page/app.js"
  std::string_view content_type;
  std::string_view etag;  // changes with the body; in quotes, as in the header
  std::string_view body;
};

// The page at "/" and what it loads, all from memory. Needs no API key: what the page asks of the
// server does. Its content security policy allows nothing from elsewhere and nothing inline, and
// text becomes markup through the sanitizer alone. Browsers ask again at each load; what they have
// already is a 304.
std::vector<http::Route> page_routes();

}  // namespace foretoken
