#include "serve/routes/api_routes.h"

#include <gtest/gtest.h>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

class ApiRoutes : public test::ServeRig {};

TEST_F(ApiRoutes, WhatWatchersAskNeedsNoKey) {
  for (const char* path : {"/health", "/ping", "/ready", "/version", "/load", "/openapi.json"}) {
    EXPECT_EQ(send("GET", path)->status(), 200) << path;
  }
  int num_open = 0;
  for (const http::Route& route : api_routes(context())) {
    num_open += route.needs_key ? 0 : 1;
    EXPECT_TRUE(route.needs_key || route.method == "GET" || route.pattern == "/ping")
        << route.pattern;
  }
  EXPECT_EQ(num_open, 7);
}

TEST_F(ApiRoutes, ADrainingServerIsHealthyButNotReady) {
  context().gate.drain();
  EXPECT_EQ(send("GET", "/ready")->status(), 503);
  EXPECT_EQ(send("GET", "/health")->status(), 200);
}

TEST_F(ApiRoutes, OtherPathsLeadToTheSame) {
  for (const char* path : {"/livez", "/readyz", "/healthz", "/v1/health", "/models"}) {
    EXPECT_EQ(send("GET", path)->status(), 200) << path;
  }
  const json body = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"max_tokens", 1}};
  EXPECT_EQ(post("/chat/completions", body)["object"], "chat.completion");
  for (const http::Route& route : other_routes(context(), api_routes(context()))) {
    EXPECT_TRUE(route.handler) << route.pattern;
  }
  EXPECT_EQ(json::parse(send("GET", "/is_sleeping")->body())["is_sleeping"], false);
}

TEST_F(ApiRoutes, Models) {
  EXPECT_EQ(json::parse(send("GET", "/v1/models")->body())["object"], "list");
  EXPECT_EQ(json::parse(send("GET", "/v1/models/tiny")->body())["id"], "tiny");
  ServeConfig config = base_config();
  config.model_names = {"org/name"};
  start(config);
  EXPECT_EQ(json::parse(send("GET", "/v1/models/org/name")->body())["id"], "org/name");
  EXPECT_EQ(send("GET", "/v1/models/nope")->status(), 404);
}

}  // namespace
}  // namespace foretoken
