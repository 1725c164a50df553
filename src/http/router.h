#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/exchange.h"

namespace foretoken::http {

// The route of a request, or what is known where there is none.
struct RouteMatch {
  const Route* route = nullptr;
  std::vector<std::string> path_values;
  // Without a route: the methods that the path has, sorted; empty where nobody has the path.
  std::vector<std::string> methods;
};

// The table of routes. A part "{name}" of a pattern stands for one whole part of a path that is not
// empty; patterns without such parts come first. Read from any thread.
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
  };
  std::vector<Entry> entries_;
};

}  // namespace foretoken::http
