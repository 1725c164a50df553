#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/message/exchange.h"

namespace foretoken::http {

// A request target, decoded.
struct Target {
  std::string path;  // "/v1/models", UTF-8; "*" for "OPTIONS *"
  Headers query;     // in order; a name without "=" has the value ""
};

// The target of a request line: the forms "/path?query", "http://host/path?query" and, for OPTIONS,
// "*". InvalidArgument for any other form, a fragment, a broken % escape, a NUL byte and text that
// is not UTF-8.
Result<Target> parse_target(std::string_view target, std::string_view method);

// The target of the request line that `bytes` begin with; "" where the space behind it has not
// come.
std::string_view first_target(std::string_view bytes);

// Removes `root` ("/llm") from the front of `path`, where it is a whole first part of it.
std::string without_root(std::string path, std::string_view root);

}  // namespace foretoken::http
