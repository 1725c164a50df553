#include "serve/routes/info_handlers.h"

#include <gtest/gtest.h>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

class InfoHandlers : public test::ServeRig {};

TEST_F(InfoHandlers, Models) {
  const json models = models_body(context(), true);
  ASSERT_EQ(models["data"].size(), 2u);
  EXPECT_EQ(models["models"].size(), 2u);
  EXPECT_EQ(models_body(context(), false)["models"], json::array());
  EXPECT_EQ(models["data"][0]["id"], "tiny");
  EXPECT_EQ(models["data"][0]["max_model_len"], 512);
  EXPECT_EQ(models["data"][0]["max_input_tokens"], 512);
  EXPECT_EQ(models["data"][0]["meta"]["n_ctx_train"], 2048);
  EXPECT_EQ(models["data"][0]["permission"].size(), 1u);
  EXPECT_EQ(models["data"][0]["display_name"], "tiny");
  EXPECT_EQ(models["data"][0]["created_at"].get<std::string>().back(), 'Z');
  EXPECT_EQ(models["has_more"], false);
  EXPECT_EQ(models["last_id"], models["data"][1]["id"]);
  EXPECT_EQ(model_body(context(), "other").value()["id"], "other");
  EXPECT_EQ(model_body(context(), "otter").status().code(), StatusCode::kNotFound);
}

TEST_F(InfoHandlers, ServerInfoTellsTheEnginesSizes) {
  const json config = server_info_body(context())["vllm_config"];
  EXPECT_EQ(config["model_config"]["max_model_len"], engine().info().max_model_len);
  EXPECT_EQ(config["scheduler_config"]["max_num_seqs"], engine().info().max_num_seqs);
  EXPECT_EQ(config["speculative_config"].size(), engine().info().drafters.size());
}

TEST_F(InfoHandlers, AHealthyEngineTakesRequests) { EXPECT_TRUE(engine_health(engine()).ok()); }

TEST_F(InfoHandlers, LoadCountsRequests) {
  EXPECT_EQ(load_body(context())["server_load"], 0);
  auto ticket = context().gate.enter(3, 1);
  EXPECT_EQ(load_body(context())["server_load"], 1);
}

TEST_F(InfoHandlers, AbortingNothingIsNoError) {
  EXPECT_EQ(post("/abort_requests", {{"request_ids", {"a"}}})["aborted"], 0);
  EXPECT_EQ(post("/abort_requests", json::object())["aborted"], 0);
  post("/abort_requests", {{"request_ids", 3}}, 400);
}

}  // namespace
}  // namespace foretoken
