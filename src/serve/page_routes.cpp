#include "serve/page_routes.h"

#include "serve/page_files.h"

namespace foretoken {
namespace {

http::Headers page_headers() {
  return {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
       "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cache-Control", "no-cache"},
  };
}

}  // namespace

std::vector<http::Route> page_routes() {
  std::vector<http::Route> routes;
  for (const PageFile& file : page_files()) {
    http::Route route;
    route.method = "GET";
    route.pattern = std::string(file.path);
    route.needs_key = false;
    route.handler = [&file](const std::shared_ptr<http::Exchange>& exchange) {
      exchange->respond(200, std::string(file.content_type), std::string(file.body),
                        page_headers());
    };
    routes.push_back(std::move(route));
  }
  return routes;
}

}  // namespace foretoken
