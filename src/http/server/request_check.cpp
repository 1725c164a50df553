#include "http/server/request_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/comma_list.h"
#include "http/message/header_text.h"
#include "http/message/inflater.h"
#include "http/message/target.h"

namespace foretoken::http {
namespace {

constexpr size_t kMaxIdBytes = 128;

OwnAnswer preflight_answer(CorsPolicy::Preflight preflight) {
  OwnAnswer answer{204, "", std::move(preflight.headers)};
  if (!preflight.allowed) {
    answer.status = 400;
    answer.message = "CORS: this server does not allow the " + preflight.problem;
  }
  return answer;
}

bool is_found(const RouteMatch& match) { return match.route != nullptr || !match.methods.empty(); }

// What to do about a path that is one of the server's behind something else: an address of a client
// that goes too far, or a proxy that leaves its prefix on.
std::string prefix_hint(const Router& router, const Request& request) {
  constexpr int kMaxParts = 8;  // each is looked for, and a path may be long
  const std::string& path = request.path;
  size_t at = 0;
  for (int i = 0; i < kMaxParts; ++i) {
    at = path.find('/', at + 1);
    if (at == std::string::npos || at + 1 == path.size()) return {};
    const std::string prefix = path.substr(0, at);
    const std::string known = path.substr(at);
    const RouteMatch match = router.match(request.method, known);
    if (!is_found(match)) continue;
    if (match.route != nullptr && !match.route->instead.empty()) {
      return "; " + match.route->instead;
    }
    const std::string hint = "; " + known + " is: leave " + prefix + " out of the client's address";
    if (is_found(router.match(request.method, prefix))) return hint;
    return hint + ", or start the server with --root-path " + prefix;
  }
  return {};
}

OwnAnswer no_route(const Router& router, const Request& request, const RouteMatch& match) {
  if (match.methods.empty()) {
    return {404, "there is no " + request.path + " here" + prefix_hint(router, request), {}};
  }
  // What Codex takes for a sign to go on without its WebSocket.
  if (same_name(request.header("upgrade"), "websocket")) {
    return {426,
            request.path + " is no WebSocket here; send " + comma_list(match.methods),
            {{"Upgrade", "HTTP/1.1"}}};
  }
  const Headers allow = {{"Allow", comma_list(match.methods)}};
  if (request.method == "OPTIONS") return {204, "", allow};
  return {405,
          request.path + " does not take " + request.method + ", only " + comma_list(match.methods),
          allow};
}

std::optional<OwnAnswer> check_key(const ServerState& state, const Route& route,
                                   const Request& request) {
  const ApiKeys& keys = state.config.api_keys;
  if (!route.needs_key || keys.empty() || keys.accepts(request)) return std::nullopt;
  return OwnAnswer{401,
                   "this server needs an API key: send \"Authorization: Bearer KEY\", "
                   "\"x-api-key: KEY\" or \"api-key: KEY\"",
                   {{"WWW-Authenticate", "Bearer"}}};
}

bool is_plain(std::string_view encoding) {
  return encoding.empty() || same_name(encoding, "identity");
}

std::optional<OwnAnswer> check_body(const RequestHead& head, const Request& request,
                                    size_t max_body_bytes) {
  const std::string_view expect = request.header("expect");
  if (!expect.empty() && !same_name(expect, "100-continue")) {
    return OwnAnswer{417, "the only expectation understood here is 100-continue", {}};
  }
  const std::string_view encoding = request.header("content-encoding");
  if (head.has_body() && !is_plain(encoding) && !Inflater::takes(encoding)) {
    return OwnAnswer{415,
                     "a body with Content-Encoding " + std::string(encoding) +
                         " is not taken: send it with gzip, deflate, or as it is",
                     {{"Accept-Encoding", "gzip, deflate"}}};
  }
  if (head.content_length.value_or(0) > max_body_bytes) {
    return OwnAnswer{413,
                     fmt::format("the body has {} bytes, more than the {} that are taken here",
                                 *head.content_length, max_body_bytes),
                     {}};
  }
  return std::nullopt;
}

}  // namespace

std::string request_id(std::string_view wanted) {
  const bool usable =
      !wanted.empty() && wanted.size() <= kMaxIdBytes &&
      std::all_of(wanted.begin(), wanted.end(), [](char c) { return c > ' ' && c < 127; });
  if (usable) return std::string(wanted);
  thread_local std::mt19937_64 random{(uint64_t{std::random_device{}()} << 32) |
                                      std::random_device{}()};
  const uint64_t high = random();
  return fmt::format("{:016x}{:016x}", high, random());
}

Admission admit(const ServerState& state, const RequestHead& head, Request& request) {
  Admission admission;
  request.id = request_id(request.header("x-request-id"));
  auto target = parse_target(head.target, request.method);
  if (!target.ok()) {
    admission.answer = OwnAnswer{400, target.status().message(), {}};
    return admission;
  }
  request.path = without_root(std::move(target.value().path), state.config.root_path);
  request.query = std::move(target.value().query);
  if (auto preflight = state.cors.preflight(request)) {
    admission.answer = preflight_answer(std::move(*preflight));
    return admission;
  }
  if (request.path == "*") {
    admission.answer = OwnAnswer{204, "", {}};
    return admission;
  }
  RouteMatch match = state.router.match(request.method, request.path);
  if (match.route == nullptr) {
    admission.answer = no_route(state.router, request, match);
    return admission;
  }
  admission.pattern = match.route->pattern;
  const size_t own_limit = match.route->max_body_bytes;
  admission.max_body_bytes = own_limit > 0 ? own_limit : state.config.max_body_bytes;
  admission.answer = check_key(state, *match.route, request);
  if (!admission.answer) admission.answer = check_body(head, request, admission.max_body_bytes);
  if (admission.answer) return admission;
  admission.body_is_packed = head.has_body() && !is_plain(request.header("content-encoding"));
  request.path_values = std::move(match.path_values);
  admission.route = match.route;
  return admission;
}

}  // namespace foretoken::http
