#include "serve/flow/sleep_handlers.h"

#include <gtest/gtest.h>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

class SleepHandlers : public test::ServeRig {
 protected:
  json call(const std::string& path, const http::Headers& query, int status = 200) {
    const auto exchange = begin("POST", path, "", query);
    EXPECT_TRUE(exchange->wait());
    EXPECT_EQ(exchange->status(), status) << exchange->body();
    return json::parse(exchange->body());
  }
  bool is_sleeping() { return json::parse(send("GET", "/is_sleeping")->body())["is_sleeping"]; }
};

TEST_F(SleepHandlers, RequestsWaitUntilBothPartsAreAwake) {
  const json body = {{"prompt", "Once"}, {"max_tokens", 8}, {"temperature", 0}};
  const json before = post("/v1/completions", body)["choices"];
  const json asleep = call("/sleep", {{"level", "2"}, {"mode", "wait"}});
  EXPECT_EQ(json(true), asleep["is_sleeping"]);
  EXPECT_GE(asleep["released_bytes"].get<int64_t>(), 0);
  EXPECT_NE(send("GET", "/metrics")->body().find("sleep_state=\"discard_all\"} 1"),
            std::string::npos);
  const auto waiting = begin("POST", "/v1/completions", body.dump());
  EXPECT_EQ(json(true), call("/wake_up", {{"tags", "weights"}})["is_sleeping"]);
  EXPECT_TRUE(is_sleeping());
  EXPECT_TRUE(json::parse(send("GET", "/props")->body())["is_sleeping"].get<bool>());
  EXPECT_EQ(json(false), call("/wake_up", {{"tags", "kv_cache"}})["is_sleeping"]);
  EXPECT_FALSE(is_sleeping());
  ASSERT_TRUE(waiting->wait());
  EXPECT_EQ(before, json::parse(waiting->body())["choices"]);
}

TEST_F(SleepHandlers, LevelsModesAndTagsAreChecked) {
  call("/sleep", {{"level", "3"}}, 400);
  call("/sleep", {{"mode", "keep"}}, 400);
  call("/wake_up", {{"tags", "weights"}, {"tags", "drafts"}}, 400);
  EXPECT_FALSE(is_sleeping());
}

// As many calls as the pool has threads, and more.
TEST_F(SleepHandlers, CallsThatWaitHoldUpNothingElse) {
  steps().close();
  const json body = {{"prompt", "Once"}, {"max_tokens", 8}, {"temperature", 0}};
  const auto running = begin("POST", "/v1/completions", body.dump());
  ASSERT_TRUE(test::eventually([&] { return engine().stats().num_running_requests > 0; }));
  std::vector<std::shared_ptr<test::FakeExchange>> calls;
  for (int i = 0; i < 3; ++i) calls.push_back(begin("POST", "/sleep", "", {{"mode", "wait"}}));
  EXPECT_GT(post("/tokenize", {{"prompt", "Once"}})["count"].get<int>(), 0);
  ASSERT_TRUE(test::eventually([&] {
    call("/wake_up", {});
    for (const auto& each : calls) {
      if (each->status() == 0) return false;
    }
    return true;
  }));
  for (const auto& each : calls) EXPECT_NE(each->status(), 200) << each->body();
  steps().open();
  ASSERT_TRUE(running->wait());
  EXPECT_EQ(running->status(), 200);
}

// A server that ends would wait for the call as for a request, and the call for others that end.
TEST_F(SleepHandlers, ACallThatWaitsEndsWhereTheServerDrains) {
  steps().close();
  const json body = {{"prompt", "Once"}, {"max_tokens", 8}, {"temperature", 0}};
  const auto running = begin("POST", "/v1/completions", body.dump());
  ASSERT_TRUE(test::eventually([&] { return engine().stats().num_running_requests > 0; }));
  const auto sleeps = begin("POST", "/sleep", "", {{"mode", "wait"}});
  service().drain();
  ASSERT_TRUE(sleeps->wait());
  EXPECT_EQ(sleeps->status(), 499) << sleeps->body();
  steps().open();
  ASSERT_TRUE(running->wait());
  EXPECT_EQ(running->status(), 200);
}

TEST_F(SleepHandlers, AreAnsweredFromThePool) {
  const auto exchange = test::FakeExchange::make("", "/wake_up");
  answer_wake_up(context(), exchange);
  ASSERT_TRUE(exchange->wait());
  EXPECT_EQ(exchange->status(), 200);
}

}  // namespace
}  // namespace foretoken
