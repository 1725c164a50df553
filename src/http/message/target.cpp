#include "http/message/target.h"

#include <algorithm>

#include "http/message/header_text.h"

namespace foretoken::http {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// In a query "+" stands for a space.
Result<std::string> percent_decoded(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return invalid_argument(
            "the request target has a % that two hexadecimal digits do not follow");
      }
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    if (c == '\0') return invalid_argument("the request target has a NUL character");
    decoded.push_back(c);
  }
  if (!is_utf8(decoded)) return invalid_argument("the request target is not UTF-8");
  return decoded;
}

Result<Headers> parse_query(std::string_view text) {
  Headers query;
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    FT_ASSIGN_OR_RETURN(std::string name, percent_decoded(pair.substr(0, equals), true));
    FT_ASSIGN_OR_RETURN(std::string value,
                        percent_decoded(pair.substr(std::min(equals + 1, pair.size())), true));
    query.emplace_back(std::move(name), std::move(value));
  }
  return query;
}

// "http://host/path" without scheme and host; other targets as they are.
std::string_view without_origin(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!same_name(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    const size_t path = target.find_first_of("/?");
    return path == std::string_view::npos ? std::string_view("/") : target.substr(path);
  }
  return target;
}

}  // namespace

Result<Target> parse_target(std::string_view target, std::string_view method) {
  if (target == "*") {
    if (method == "OPTIONS") return Target{"*", {}};
    return invalid_argument("the request target * is for OPTIONS only");
  }
  if (method == "CONNECT") return invalid_argument("CONNECT is for proxies, and this is none");
  const std::string_view local = without_origin(target);
  const bool only_query = local.data() != target.data() && local.front() == '?';
  if (local.empty() || (local.front() != '/' && !only_query)) {
    return invalid_argument("the request target must begin with / or with http://");
  }
  if (local.find('#') != std::string_view::npos) {
    return invalid_argument("the request target has a fragment (#), which belongs to the client");
  }
  const size_t path_end = std::min(local.find('?'), local.size());
  Target parsed;
  FT_ASSIGN_OR_RETURN(parsed.path, percent_decoded(local.substr(0, path_end), false));
  if (parsed.path.empty()) parsed.path.push_back('/');
  FT_ASSIGN_OR_RETURN(parsed.query,
                      parse_query(local.substr(std::min(path_end + 1, local.size()))));
  return parsed;
}

std::string_view first_target(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.find_first_of("\r\n"));
  const size_t begin = line.find(' ');
  if (begin == std::string_view::npos) return {};
  const size_t end = line.find(' ', begin + 1);
  if (end == std::string_view::npos) return {};
  return line.substr(begin + 1, end - begin - 1);
}

std::string without_root(std::string path, std::string_view root) {
  while (!root.empty() && root.back() == '/') root.remove_suffix(1);
  if (root.empty() || path.compare(0, root.size(), root) != 0) return path;
  if (path.size() == root.size()) return "/";
  return path[root.size()] == '/' ? path.substr(root.size()) : path;
}

}  // namespace foretoken::http
