#include "serve/response_handlers.h"

#include <gtest/gtest.h>

#include "serve/serve_rig.h"

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

TEST_F(ResponseHandlers, CancellingEndsTheText) {
  post("/v1/responses", {{"input", "Hi"},
                         {"max_output_tokens", 450},
                         {"ignore_eos", true},
                         {"background", true},
                         {"request_id", "long"}});
  const auto cancelled = send("POST", "/v1/responses/resp_long/cancel");
  EXPECT_EQ(cancelled->status(), 200);
  EXPECT_EQ(json::parse(cancelled->body())["status"], "cancelled");
  ASSERT_TRUE(wait_idle());
  EXPECT_EQ(get("resp_long")["status"], "cancelled");
  EXPECT_LT(get("resp_long")["usage"]["output_tokens"].get<int>(), 450);
  EXPECT_EQ(send("POST", "/v1/responses/none/cancel")->status(), 404);
}

TEST_F(ResponseHandlers, AResponseThatIsWaitedForCannotBeCancelled) {
  post("/v1/responses", {{"input", "Hi"}, {"max_output_tokens", 1}, {"request_id", "fg"}});
  EXPECT_EQ(send("POST", "/v1/responses/resp_fg/cancel")->status(), 400);
}

}  // namespace
}  // namespace foretoken
