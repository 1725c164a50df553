#include "serve/routes/elsewhere_routes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "http/server/router.h"

namespace foretoken {
namespace {

// What is told stands in the route, too, for paths that have something before it.
TEST(ElsewhereRoutes, EachSaysWhatToUseInstead) {
  const auto routes = elsewhere_routes();
  EXPECT_TRUE(std::ranges::none_of(routes, [](const auto& one) { return one.instead.empty(); }));
  const auto router = http::Router::make(routes);
  ASSERT_TRUE(router.ok()) << router.status().message();
  for (const char* path : {"/v1/batches", "/v1/batches/b/cancel", "/v1/messages/batches"}) {
    for (const char* method : {"GET", "POST", "DELETE"}) {
      const auto match = router.value().match(method, path);
      ASSERT_NE(match.route, nullptr) << method << path;
      EXPECT_NE(match.route->instead.find("run-batch"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace foretoken
