#include "serve/routes/response_handlers.h"

#include <gtest/gtest.h>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

class ResponseHandlers : public test::ServeRig {
 protected:
  json get(const std::string& id, int status = 200) {
    const auto exchange = send("GET", "/v1/responses/" + id);
    EXPECT_EQ(exchange->status(), status);
    return json::parse(exchange->body());
  }
};

TEST_F(ResponseHandlers, AConversationOfTwo) {
  const json first =
      post("/v1/responses", {{"input", "Hi"}, {"max_output_tokens", 6}, {"request_id", "one"}});
  EXPECT_EQ(first["id"], "resp_one");
  EXPECT_EQ(first["output"][0]["type"], "message");
  EXPECT_EQ(get("resp_one"), first);
  const json second =
      post("/v1/responses",
           {{"input", "And?"}, {"max_output_tokens", 6}, {"previous_response_id", "resp_one"}});
  EXPECT_GT(second["usage"]["input_tokens"].get<int>(), first["usage"]["input_tokens"].get<int>());
  EXPECT_EQ(second["previous_response_id"], "resp_one");
  get("resp_none", 404);
}

TEST_F(ResponseHandlers, AResponseInTheBackground) {
  const json queued =
      post("/v1/responses",
           {{"input", "Hi"}, {"max_output_tokens", 6}, {"background", true}, {"request_id", "bg"}});
  EXPECT_EQ(queued["status"], "queued");
  ASSERT_TRUE(wait_idle());
  const json done = get("resp_bg");
  EXPECT_TRUE(done["status"] == "completed" || done["status"] == "incomplete") << done.dump();
  EXPECT_EQ(done["output"][0]["type"], "message");
}

TEST_F(ResponseHandlers, OneInTheBackgroundGoesToTheEngineThatItNames) {
  const json body = {{"input", "Hi"}, {"background", true}, {"request_id", "named"}};
  const auto asked =
      begin("POST", "/v1/responses", body.dump(), {}, {{"X-data-parallel-rank", "5"}});
  ASSERT_TRUE(asked->wait());
  ASSERT_TRUE(wait_idle());
  const json failed = get("resp_named");
  EXPECT_EQ(failed["status"], "failed");
  EXPECT_NE(failed["error"]["message"].get<std::string>().find("a request may name engine 0 alone"),
            std::string::npos)
      << failed.dump();
}

TEST_F(ResponseHandlers, CancellingEndsTheText) {
  steps().close();
  post("/v1/responses", {{"input", "Hi"},
                         {"max_output_tokens", 450},
                         {"ignore_eos", true},
                         {"background", true},
                         {"request_id", "long"}});
  const auto cancelled = send("POST", "/v1/responses/resp_long/cancel");
  EXPECT_EQ(cancelled->status(), 200);
  EXPECT_EQ(json::parse(cancelled->body())["status"], "cancelled");
  steps().open();
  ASSERT_TRUE(wait_idle());
  EXPECT_EQ(get("resp_long")["status"], "cancelled");
  EXPECT_LT(get("resp_long")["usage"]["output_tokens"].get<int>(), 450);
  EXPECT_EQ(send("POST", "/v1/responses/none/cancel")->status(), 404);
}

TEST_F(ResponseHandlers, OneThatRunsIsInProgress) {
  steps().close();
  post("/v1/responses", {{"input", "Hi"},
                         {"max_output_tokens", 450},
                         {"ignore_eos", true},
                         {"background", true},
                         {"request_id", "slow"}});
  EXPECT_EQ(get("resp_slow")["status"], "queued");
  steps().let(1);
  EXPECT_TRUE(test::eventually([&] { return get("resp_slow")["status"] != "queued"; }));
  EXPECT_EQ(get("resp_slow")["status"], "in_progress");
  steps().open();
  EXPECT_TRUE(test::eventually([&] { return get("resp_slow")["status"] != "in_progress"; }));
  EXPECT_EQ(get("resp_slow")["status"], "incomplete");
}

TEST_F(ResponseHandlers, DeletedOnesAreGone) {
  post("/v1/responses", {{"input", "Hi"}, {"max_output_tokens", 1}, {"request_id", "gone"}});
  const auto deleted = send("DELETE", "/v1/responses/resp_gone");
  EXPECT_EQ(deleted->status(), 200);
  EXPECT_EQ(json::parse(deleted->body()),
            (json{{"id", "resp_gone"}, {"object", "response"}, {"deleted", true}}));
  get("resp_gone", 404);
  const auto again = send("DELETE", "/v1/responses/resp_gone");
  EXPECT_EQ(again->status(), 404);
  EXPECT_NE(again->body().find("there is no response 'resp_gone'"), std::string::npos);
  const auto next = send("POST", "/v1/responses",
                         json{{"input", "And?"}, {"previous_response_id", "resp_gone"}}.dump());
  EXPECT_EQ(next->status(), 404);
}

TEST_F(ResponseHandlers, DeletingEndsOneThatRuns) {
  steps().close();
  post("/v1/responses", {{"input", "Hi"},
                         {"max_output_tokens", 450},
                         {"ignore_eos", true},
                         {"background", true},
                         {"request_id", "dropped"}});
  EXPECT_EQ(send("DELETE", "/v1/responses/resp_dropped")->status(), 200);
  steps().open();
  ASSERT_TRUE(wait_idle());
  get("resp_dropped", 404);
  EXPECT_EQ(context().responses.size(), 0u);
}

TEST_F(ResponseHandlers, NothingGoesOnFromACancelledOne) {
  steps().close();
  post("/v1/responses", {{"input", "Hi"},
                         {"max_output_tokens", 450},
                         {"ignore_eos", true},
                         {"background", true},
                         {"request_id", "cut"}});
  send("POST", "/v1/responses/resp_cut/cancel");
  EXPECT_EQ(get("resp_cut")["status"], "cancelled");
  steps().open();
  ASSERT_TRUE(wait_idle());
  const auto next = send("POST", "/v1/responses",
                         json{{"input", "And?"}, {"previous_response_id", "resp_cut"}}.dump());
  EXPECT_EQ(next->status(), 400);
  EXPECT_NE(next->body().find("cancelled"), std::string::npos) << next->body();
}

TEST_F(ResponseHandlers, EventsOfTheForegroundAreNotKept) {
  post("/v1/responses", {{"input", "Hi"}, {"max_output_tokens", 1}, {"request_id", "e"}});
  auto exchange = begin("GET", "/v1/responses/resp_e", "", {{"stream", "true"}});
  EXPECT_EQ(exchange->status(), 400);
  exchange = begin("GET", "/v1/responses/resp_e", "", {{"stream", "false"}});
  EXPECT_EQ(exchange->status(), 200);
}

TEST_F(ResponseHandlers, AResponseThatIsWaitedForCannotBeCancelled) {
  post("/v1/responses", {{"input", "Hi"}, {"max_output_tokens", 1}, {"request_id", "fg"}});
  EXPECT_EQ(send("POST", "/v1/responses/resp_fg/cancel")->status(), 400);
}

}  // namespace
}  // namespace foretoken
