#include "net/url.h"

#include <curl/curl.h>

#include <memory>

namespace foretoken::net {
namespace {

struct FreeHandle {
  void operator()(CURLU* handle) const { curl_url_cleanup(handle); }
};
using Handle = std::unique_ptr<CURLU, FreeHandle>;

std::string part(const Handle& handle, CURLUPart what, unsigned int flags = 0) {
  char* text = nullptr;
  if (curl_url_get(handle.get(), what, &text, flags) != CURLUE_OK) return "";
  std::string copy = text;
  curl_free(text);
  return copy;
}

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace

std::string Url::origin() const {
  return (tls ? "https://" : "http://") + bracketed(host) + ":" + port;
}

Result<Url> parse_url(const std::string& text) {
  const Handle handle(curl_url());
  const CURLUcode code =
      curl_url_set(handle.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME);
  if (code != CURLUE_OK) {
    return invalid_argument(
        "'" + text + "' is no address like http://127.0.0.1:8000: " + curl_url_strerror(code));
  }
  const std::string scheme = part(handle, CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") {
    return invalid_argument("'" + text + "' must begin with http:// or https://");
  }
  const bool more = !part(handle, CURLUPART_QUERY).empty() ||
                    !part(handle, CURLUPART_FRAGMENT).empty() ||
                    !part(handle, CURLUPART_USER).empty();
  if (more) {
    return invalid_argument("'" + text +
                            "' must be http[s]://host[:port][/path] without credentials, query "
                            "and fragment; give keys as a header");
  }
  Url url;
  url.tls = scheme == "https";
  url.host = part(handle, CURLUPART_HOST);
  if (url.host.size() > 2 && url.host.front() == '[') {
    url.host = url.host.substr(1, url.host.size() - 2);
  }
  url.port = part(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  url.path = part(handle, CURLUPART_PATH);
  while (!url.path.empty() && url.path.back() == '/') url.path.pop_back();
  return url;
}

}  // namespace foretoken::net
