#include "http/server/cors.h"

#include <algorithm>

#include "base/comma_list.h"
#include "http/message/header_text.h"

namespace foretoken::http {
namespace {

constexpr const char* kAllMethods = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT";
// Every page may send these (the CORS-safelisted request headers).
constexpr const char* kSafeHeaders = "Accept, Accept-Language, Content-Language, Content-Type";

bool has_star(const std::vector<std::string>& list) {
  return std::find(list.begin(), list.end(), "*") != list.end();
}

bool has_name(const std::vector<std::string>& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& one) { return same_name(one, name); });
}

}  // namespace

CorsPolicy::CorsPolicy(CorsConfig config)
    : config_(std::move(config)),
      any_origin_(has_star(config_.allowed_origins)),
      any_method_(has_star(config_.allowed_methods)),
      any_header_(has_star(config_.allowed_headers)) {}

bool CorsPolicy::allows_origin(std::string_view origin) const {
  return any_origin_ || std::find(config_.allowed_origins.begin(), config_.allowed_origins.end(),
                                  origin) != config_.allowed_origins.end();
}

Headers CorsPolicy::headers(const Request& request) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty() || config_.allowed_origins.empty()) return {};
  // A browser does not take "*" together with credentials, so the origin itself is named then.
  const bool names_origin = !any_origin_ || config_.allow_credentials;
  Headers headers;
  if (names_origin) headers.emplace_back("Vary", "Origin");
  if (!allows_origin(origin)) return headers;
  headers.emplace_back("Access-Control-Allow-Origin", names_origin ? std::string(origin) : "*");
  if (config_.allow_credentials) headers.emplace_back("Access-Control-Allow-Credentials", "true");
  return headers;
}

std::optional<CorsPolicy::Preflight> CorsPolicy::preflight(const Request& request) const {
  const std::string_view method = request.header("access-control-request-method");
  if (request.method != "OPTIONS" || method.empty() || request.header("origin").empty() ||
      config_.allowed_origins.empty()) {
    return std::nullopt;
  }
  Preflight answer;
  if (!allows_origin(request.header("origin"))) answer.problem = "origin";
  if (!any_method_ && !has_name(config_.allowed_methods, method)) answer.problem = "method";
  const std::string_view wanted = request.header("access-control-request-headers");
  for (const std::string& name : split_list(wanted)) {
    if (!any_header_ && !has_name(config_.allowed_headers, name) && !list_has(kSafeHeaders, name)) {
      answer.problem = "header " + name;
    }
  }
  answer.allowed = answer.problem.empty();
  answer.headers.emplace_back("Access-Control-Allow-Methods",
                              any_method_ ? kAllMethods : comma_list(config_.allowed_methods));
  std::string allowed = comma_list(config_.allowed_headers);
  if (any_header_) allowed = wanted.empty() ? kSafeHeaders : std::string(wanted);
  if (!allowed.empty()) answer.headers.emplace_back("Access-Control-Allow-Headers", allowed);
  answer.headers.emplace_back("Access-Control-Max-Age", "600");
  return answer;
}

}  // namespace foretoken::http
