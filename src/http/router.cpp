#include "http/router.h"

#include <algorithm>

namespace foretoken::http {
namespace {

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  path.remove_prefix(1);
  for (;;) {
    const size_t slash = path.find('/');
    parts.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

bool fits(const std::vector<std::string>& pattern, bool open,
          const std::vector<std::string>& path) {
  if (!open) return pattern == path;
  return std::equal(pattern.begin(), pattern.end(), path.begin(), path.end(),
                    [](const std::string& part, const std::string& value) {
                      return part.empty() ? !value.empty() : part == value;
                    });
}

void add_method(std::vector<std::string>& methods, const std::string& method) {
  const auto place = std::lower_bound(methods.begin(), methods.end(), method);
  if (place == methods.end() || *place != method) methods.insert(place, method);
}

}  // namespace

Result<Router> Router::make(std::vector<Route> routes) {
  Router router;
  for (Route& route : routes) {
    const std::string name = route.method + " " + route.pattern;
    if (route.pattern.empty() || route.pattern.front() != '/') {
      return invalid_argument("route " + name + ": the pattern must begin with /");
    }
    if (!route.handler) return invalid_argument("route " + name + " has no handler");
    Entry entry;
    entry.parts = split_path(route.pattern);
    for (std::string& part : entry.parts) {
      if (part.find_first_of("{}") == std::string::npos) continue;
      if (part.size() < 3 || part.front() != '{' ||
          part.find_first_of("{}", 1) != part.size() - 1) {
        return invalid_argument("route " + name + ": " + part + " is not {name}");
      }
      part.clear();
      ++entry.num_open;
    }
    for (const Entry& other : router.entries_) {
      if (other.route.method == route.method && other.parts == entry.parts &&
          other.num_open == entry.num_open) {
        return invalid_argument("route " + name + " is the same as " + other.route.pattern);
      }
    }
    entry.route = std::move(route);
    router.entries_.push_back(std::move(entry));
  }
  std::stable_sort(router.entries_.begin(), router.entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.num_open < b.num_open; });
  return router;
}

RouteMatch Router::match(std::string_view method, std::string_view path) const {
  RouteMatch match;
  if (path.empty() || path.front() != '/') return match;
  const std::vector<std::string> parts = split_path(path);
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const Entry& entry : entries_) {
    if (!fits(entry.parts, entry.num_open > 0, parts)) continue;
    if (entry.route.method != wanted && entry.route.method != method) {
      add_method(match.methods, entry.route.method);
      if (entry.route.method == "GET") add_method(match.methods, "HEAD");
      continue;
    }
    match.route = &entry.route;
    match.methods.clear();
    for (size_t i = 0; i < parts.size(); ++i) {
      if (entry.num_open > 0 && entry.parts[i].empty()) match.path_values.push_back(parts[i]);
    }
    return match;
  }
  return match;
}

}  // namespace foretoken::http
