#include "serve/routes/service.h"

#include <algorithm>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

class ServiceTest : public test::ServeRig {};

TEST_F(ServiceTest, AllThatAServerAnswersHasARoute) {
  for (const char* path : {"/", "/metrics", "/v1/models", "/health"}) {
    EXPECT_EQ(send("GET", path)->status(), 200) << path;
  }
}

TEST_F(ServiceTest, WhatTheEngineKnowsIsAskedOfIt) {
  const OpenAiDefaults& defaults = context().defaults;
  EXPECT_EQ(defaults.max_model_len, engine().info().max_model_len);
  EXPECT_EQ(defaults.max_new_tokens, engine().info().max_new_tokens);
  EXPECT_EQ(defaults.sampling.temperature, engine().default_sampling_params().temperature);
}

TEST_F(ServiceTest, MetricsCountWhatTheHandlersSee) {
  post("/v1/completions", {{"prompt", "Once"}, {"max_tokens", 3}, {"ignore_eos", true}});
  ASSERT_TRUE(wait_idle());
  const std::string page = send("GET", "/metrics")->body();
  const size_t line = page.find("\nvllm:generation_tokens_total{");
  ASSERT_NE(line, std::string::npos) << page;
  EXPECT_NE(page.substr(line + 1, page.find('\n', line + 1) - line).find(" 3"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
