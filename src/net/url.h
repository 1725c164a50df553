#pragma once
#include <string>

#include "base/result.h"

namespace foretoken::net {

// The address of a server, and what comes before the paths on it.
struct Url {
  bool tls = false;
  std::string host;  // without the brackets of an IPv6 address
  std::string port;  // "8000"; of the scheme where none is given
  std::string path;  // "" or "/prefix", without a slash at its end

  // "http://127.0.0.1:8000", "https://[::1]:8443".
  std::string origin() const;
};

// "http[s]://host[:port][/path]". InvalidArgument names what is wrong; a query, a fragment or
// credentials are refused.
Result<Url> parse_url(const std::string& text);

}  // namespace foretoken::net
