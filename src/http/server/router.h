#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/message/exchange.h"

namespace foretoken::http {

// The route of a request, or what is known where there is none.
struct RouteMatch {
  const Route* route = nullptr;
  std::vector<std::string> path_values;
  // Without a route: the methods that the path has, sorted; empty where nobody has the path.
  std::vector<std::string> methods;
};

// The table of routes. A part "{name}" of a pattern stands for one whole part of a path that is not
// empty, and a last part "{name...}" for all that is left of it, with its slashes; patterns without
// such parts come first, those with a rest last. A path that no route has is looked for once more
// without empty parts ("/v1//models/"), then without the first of two first parts that are the same
// ("/v1/v1/messages", from an address that already ends as the client's paths begin). Read from any
// thread.
class Router {
 public:
  // InvalidArgument for a pattern that does not begin with /, braces around half a part, a route
  // without handler, and two routes of one method that no path tells apart.
  static Result<Router> make(std::vector<Route> routes);

  // GET's routes serve HEAD too.
  RouteMatch match(std::string_view method, std::string_view path) const;

 private:
  struct Entry {
    Route route;
    std::vector<std::string> parts;  // "" for {name}
    size_t num_open = 0;
    bool takes_rest = false;  // the last part
  };
  RouteMatch match_parts(std::string_view method, const std::vector<std::string>& parts) const;
  static bool fits(const Entry& entry, const std::vector<std::string>& path);
  static std::vector<std::string> open_values(const Entry& entry,
                                              const std::vector<std::string>& path);

  std::vector<Entry> entries_;
};

}  // namespace foretoken::http
