#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "http/message/exchange.h"
#include "http/server/server.h"

namespace foretoken::http {

// What browsers are told about pages of other origins. Read from any thread.
class CorsPolicy {
 public:
  explicit CorsPolicy(CorsConfig config);

  // The headers of every answer to `request`.
  Headers headers(const Request& request) const;

  struct Preflight {
    bool allowed = false;
    std::string problem;  // where it is not
    Headers headers;      // beside those of every answer
  };
  // The answer to a preflight: OPTIONS with Origin and Access-Control-Request-Method. Nothing for
  // other requests, and where CORS is off.
  std::optional<Preflight> preflight(const Request& request) const;

 private:
  bool allows_origin(std::string_view origin) const;

  CorsConfig config_;
  bool any_origin_ = false;
  bool any_method_ = false;
  bool any_header_ = false;
};

}  // namespace foretoken::http
