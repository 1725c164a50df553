#include "serve/routes/page_routes.h"

#include "serve/routes/page_files.h"

namespace foretoken {
namespace {

http::Headers page_headers(const PageFile& file) {
  return {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
       "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
       "require-trusted-types-for 'script'; trusted-types dompurify"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cache-Control", "no-cache"},
      {"ETag", std::string(file.etag)},
  };
}

// If-None-Match lists what the browser has; a proxy that packs bodies puts "W/" before a tag.
bool has_already(const http::Request& request, const PageFile& file) {
  return request.header("If-None-Match").find(file.etag) != std::string_view::npos;
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
      if (has_already(exchange->request(), file)) {
        return exchange->respond(304, "", "", page_headers(file));
      }
      exchange->respond(200, std::string(file.content_type), std::string(file.body),
                        page_headers(file));
    };
    routes.push_back(std::move(route));
  }
  return routes;
}

}  // namespace foretoken
