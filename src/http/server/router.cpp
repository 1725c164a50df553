#include "http/server/router.h"

#include <algorithm>
#include <utility>

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
      const bool rest = part.ends_with("...}");
      if (rest && &part != &entry.parts.back()) {
        return invalid_argument("route " + name + ": " + part + " must be the last part");
      }
      entry.takes_rest = rest;
      part.clear();
      ++entry.num_open;
    }
    for (const Entry& other : router.entries_) {
      if (other.route.method == route.method && other.parts == entry.parts &&
          other.num_open == entry.num_open && other.takes_rest == entry.takes_rest) {
        return invalid_argument("route " + name + " is the same as " + other.route.pattern);
      }
    }
    entry.route = std::move(route);
    router.entries_.push_back(std::move(entry));
  }
  std::stable_sort(
      router.entries_.begin(), router.entries_.end(), [](const Entry& a, const Entry& b) {
        return std::pair(a.takes_rest, a.num_open) < std::pair(b.takes_rest, b.num_open);
      });
  return router;
}

bool Router::fits(const Entry& entry, const std::vector<std::string>& path) {
  if (entry.num_open == 0) return entry.parts == path;
  const size_t count = entry.parts.size();
  if (entry.takes_rest ? path.size() < count : path.size() != count) return false;
  for (size_t i = 0; i < count; ++i) {
    const std::string& part = entry.parts[i];
    if (part.empty() ? path[i].empty() : part != path[i]) return false;
  }
  // A rest has no empty parts either.
  return std::find(path.begin() + static_cast<std::ptrdiff_t>(count), path.end(), "") == path.end();
}

std::vector<std::string> Router::open_values(const Entry& entry,
                                             const std::vector<std::string>& path) {
  std::vector<std::string> values;
  if (entry.num_open == 0) return values;
  for (size_t i = 0; i < entry.parts.size(); ++i) {
    if (entry.parts[i].empty()) values.push_back(path[i]);
  }
  for (size_t i = entry.parts.size(); i < path.size(); ++i) values.back() += "/" + path[i];
  return values;
}

RouteMatch Router::match_parts(std::string_view method,
                               const std::vector<std::string>& parts) const {
  RouteMatch match;
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const Entry& entry : entries_) {
    if (!fits(entry, parts)) continue;
    if (entry.route.method != wanted && entry.route.method != method) {
      add_method(match.methods, entry.route.method);
      if (entry.route.method == "GET") add_method(match.methods, "HEAD");
      continue;
    }
    match.route = &entry.route;
    match.methods.clear();
    match.path_values = open_values(entry, parts);
    return match;
  }
  return match;
}

RouteMatch Router::match(std::string_view method, std::string_view path) const {
  if (path.empty() || path.front() != '/') return {};
  std::vector<std::string> parts = split_path(path);
  RouteMatch match = match_parts(method, parts);
  const auto found = [&match] { return match.route != nullptr || !match.methods.empty(); };
  if (!found() && std::erase(parts, "") > 0) match = match_parts(method, parts);
  const bool doubled = parts.size() > 1 && parts[0] == parts[1];
  if (found() || !doubled) return match;
  parts.erase(parts.begin());
  return match_parts(method, parts);
}

}  // namespace foretoken::http
