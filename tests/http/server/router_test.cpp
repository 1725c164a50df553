#include "http/server/router.h"

#include <gtest/gtest.h>

namespace foretoken::http {
namespace {

Route route(const std::string& method, const std::string& pattern) {
  return {method, pattern, [](auto) {}};
}

Router made_router(std::vector<Route> routes) {
  auto result = Router::make(std::move(routes));
  EXPECT_TRUE(result.ok()) << result.status().message();
  return std::move(result).value();
}

TEST(HttpRouter, FindsByMethodAndPath) {
  const Router router = made_router({route("GET", "/v1/models"), route("POST", "/v1/chat")});
  EXPECT_EQ(router.match("GET", "/v1/models").route->pattern, "/v1/models");
  EXPECT_EQ(router.match("HEAD", "/v1/models").route->pattern, "/v1/models");
  for (const char* path : {"/v1", "/V1/models", "/v1/models/x", "", "*", "/"}) {
    const RouteMatch match = router.match("GET", path);
    EXPECT_EQ(match.route, nullptr) << path;
    EXPECT_TRUE(match.methods.empty()) << path;
  }
}

TEST(HttpRouter, FindsPathsWithSlashesTooMany) {
  const Router router = made_router(
      {route("GET", "/"), route("GET", "/v1/models"), route("GET", "/v1/models/{id...}")});
  for (const char* path : {"/v1/models/", "//v1/models", "/v1//models", "/v1/models//"}) {
    ASSERT_NE(router.match("GET", path).route, nullptr) << path;
    EXPECT_EQ(router.match("GET", path).route->pattern, "/v1/models") << path;
  }
  EXPECT_EQ(router.match("POST", "/v1/models/").methods, (std::vector<std::string>{"GET", "HEAD"}));
  EXPECT_EQ(router.match("GET", "/").route->pattern, "/");
}

TEST(HttpRouter, FindsPathsThatBeginTwice) {
  const Router router = made_router({route("GET", "/v1/models"), route("GET", "/r/{id}")});
  for (const char* path : {"/v1/v1/models", "/v1//v1/models/"}) {
    ASSERT_NE(router.match("GET", path).route, nullptr) << path;
  }
  EXPECT_EQ(router.match("POST", "/v1/v1/models").methods,
            (std::vector<std::string>{"GET", "HEAD"}));
  EXPECT_EQ(router.match("GET", "/r/r").path_values, std::vector<std::string>{"r"});
  EXPECT_EQ(router.match("GET", "/v1/v1").route, nullptr);
  EXPECT_EQ(router.match("GET", "/v1/v1/v1/models").route, nullptr);
  EXPECT_EQ(router.match("GET", "//").route, nullptr);
}

TEST(HttpRouter, ARestTakesSlashesAndComesLast) {
  const Router router = made_router(
      {route("GET", "/m/{id...}"), route("GET", "/m/{id}/parts"), route("GET", "/m/latest")});
  const RouteMatch match = router.match("GET", "/m/org/name");
  ASSERT_NE(match.route, nullptr);
  EXPECT_EQ(match.path_values, (std::vector<std::string>{"org/name"}));
  EXPECT_EQ(router.match("GET", "/m/a/b/c").path_values, (std::vector<std::string>{"a/b/c"}));
  EXPECT_EQ(router.match("GET", "/m/a").path_values, (std::vector<std::string>{"a"}));
  EXPECT_EQ(router.match("GET", "/m/a/parts").route->pattern, "/m/{id}/parts");
  EXPECT_EQ(router.match("GET", "/m/latest").route->pattern, "/m/latest");
  EXPECT_EQ(router.match("GET", "/m/").route, nullptr);
}

TEST(HttpRouter, TellsTheMethodsOfAPath) {
  const Router router =
      made_router({route("POST", "/a"), route("GET", "/a"), route("DELETE", "/{x}")});
  const RouteMatch match = router.match("PUT", "/a");
  EXPECT_EQ(match.route, nullptr);
  EXPECT_EQ(match.methods, (std::vector<std::string>{"DELETE", "GET", "HEAD", "POST"}));
}

TEST(HttpRouter, OpenPartsTakeOneWholePart) {
  const Router router = made_router(
      {route("GET", "/r/{id}/parts/{n}"), route("GET", "/r/{id}"), route("GET", "/r/latest")});
  const RouteMatch match = router.match("GET", "/r/a b/parts/3");
  ASSERT_NE(match.route, nullptr);
  EXPECT_EQ(match.path_values, (std::vector<std::string>{"a b", "3"}));
  EXPECT_EQ(router.match("GET", "/r/latest").route->pattern, "/r/latest");
  EXPECT_EQ(router.match("GET", "/r/late").route->pattern, "/r/{id}");
  EXPECT_EQ(router.match("GET", "/r/").route, nullptr);
  EXPECT_EQ(router.match("GET", "/r/a/b").route, nullptr);
}

TEST(HttpRouter, RefusesTablesThatMeanTwoThings) {
  EXPECT_FALSE(Router::make({route("GET", "/a"), route("GET", "/a")}).ok());
  EXPECT_FALSE(Router::make({route("GET", "/{a}"), route("GET", "/{b}")}).ok());
  EXPECT_FALSE(Router::make({route("GET", "a")}).ok());
  EXPECT_FALSE(Router::make({route("GET", "/x{a}")}).ok());
  EXPECT_FALSE(Router::make({route("GET", "/{}")}).ok());
  EXPECT_FALSE(Router::make({route("GET", "/{a...}/b")}).ok());
  EXPECT_FALSE(Router::make({route("GET", "/{a...}"), route("GET", "/{b...}")}).ok());
  EXPECT_FALSE(Router::make({{"GET", "/a", nullptr}}).ok());
  EXPECT_TRUE(Router::make({route("GET", "/{a}"), route("POST", "/{b}")}).ok());
}

}  // namespace
}  // namespace foretoken::http
