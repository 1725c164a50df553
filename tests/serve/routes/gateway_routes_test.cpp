#include "serve/routes/gateway_routes.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

class GatewayRoutes : public test::ServeRig {
 protected:
  json get(const std::string& path, int status = 200) {
    const auto exchange = send("GET", path);
    EXPECT_EQ(exchange->status(), status) << path << exchange->body();
    return json::parse(exchange->body());
  }
};

TEST_F(GatewayRoutes, AzuresV1HasTheServersOwn) {
  http::Route own;
  own.method = "GET";
  own.pattern = "/v1/models";
  const auto patterns_of = [this](const std::vector<http::Route>& routes) {
    std::set<std::string> patterns;
    for (const http::Route& route : gateway_routes(context(), routes)) {
      patterns.insert(route.pattern);
    }
    return patterns;
  };
  EXPECT_EQ(patterns_of({}).count("/openai/v1/models"), 0u);
  EXPECT_EQ(patterns_of({own}).count("/openai/v1/models"), 1u);
  EXPECT_EQ(patterns_of({own}).count("/openai/models"), 1u);
}

TEST_F(GatewayRoutes, ADeploymentIsTheModelOfItsPath) {
  const json text = post("/openai/deployments/tiny/completions",
                         {{"model", "gpt-4o"}, {"prompt", "Once"}, {"max_tokens", 1}});
  EXPECT_EQ(text["model"], "tiny");
  post("/openai/deployments/gpt-4o/completions", {{"prompt", "Once"}, {"max_tokens", 1}}, 404);
  EXPECT_EQ(get("/openai/v1/models")["data"], get("/v1/models")["data"]);
}

TEST_F(GatewayRoutes, KservesModelsAreReadyUntilTheServerDrains) {
  EXPECT_EQ(get("/v2")["name"], "foretoken");
  EXPECT_EQ(get("/v2/models/tiny")["versions"], json::array({"1"}));
  EXPECT_EQ(get("/v2/models/tiny/ready")["ready"], true);
  EXPECT_EQ(get("/v2/models/tiny/versions/1/ready")["name"], "tiny");
  const json unknown = get("/v2/models/otter/ready", 404);
  EXPECT_EQ(unknown["error"]["message"].get<std::string>().find("tiny"), std::string::npos);
  context().gate.drain();
  get("/v2/models/tiny/ready", 503);
  get("/v2/models/tiny");
}

TEST_F(GatewayRoutes, GapsNeedAModelThatWasTaughtThem) {
  const json answer = post("/v1/fim/completions", {{"prompt", "Once"}, {"max_tokens", 2}});
  EXPECT_EQ(answer["object"], "chat.completion");
  post("/v1/fim/completions", {{"prompt", "Once"}, {"suffix", "end"}}, 501);
  post("/v1/fim/completions", {{"suffix", "end"}}, 400);
}

TEST_F(GatewayRoutes, CoheresTextsAreCutAtTheirEnd) {
  std::string text;
  for (int i = 0; i < 600; ++i) text += "a cat and ";
  const json answer = post("/v2/embed", {{"texts", json::array({text})}});
  EXPECT_LE(answer["meta"]["billed_units"]["input_tokens"].get<int>(), 512);
  post("/v2/embed", {{"texts", json::array({text})}, {"truncate", "NONE"}}, 400);
}

TEST_F(GatewayRoutes, LoadsAreToldByEngine) {
  EXPECT_EQ(get("/get_load").size(), get("/v1/loads")["dp_rank_count"].get<size_t>());
  EXPECT_GT(get("/get_load")[0]["max_total_num_tokens"].get<int64_t>(), 0);
}

}  // namespace
}  // namespace foretoken
