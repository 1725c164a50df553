#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "http/message/exchange.h"
#include "http/server/request_parser.h"
#include "http/server/server_state.h"

namespace foretoken::http {

// An answer that the server gives by itself.
struct OwnAnswer {
  int status = 400;
  std::string message;  // of an error; "" for an answer without a body
  Headers headers;
};

// What a request's head leads to: a route, or an answer of the server.
struct Admission {
  const Route* route = nullptr;  // null where `answer` is set
  std::string_view pattern;      // of the route that has the path, also where `answer` is set
  size_t max_body_bytes = 0;
  bool body_is_packed = false;  // by gzip or deflate
  std::optional<OwnAnswer> answer;
};

// Fills path, query, path_values and id of `request`, whose method and headers are known, and
// decides: target, preflight, route, key, Expect, Content-Encoding, size of the body.
Admission admit(const ServerState& state, const RequestHead& head, Request& request);

// The client's X-Request-Id where it is short and printable, or a new one.
std::string request_id(std::string_view wanted);

}  // namespace foretoken::http
