#include "serve/flow/sleep_handlers.h"

#include <gtest/gtest.h>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

// The engine of these tests is one without the flag; tests/engine/sleep_test.cpp has one that
// sleeps.
class SleepHandlers : public test::ServeRig {};

TEST_F(SleepHandlers, SayWhatIsMissing) {
  for (const char* path : {"/sleep", "/wake_up"}) {
    const json answer = post(path, json::object(), 501);
    EXPECT_NE(answer["error"]["message"].get<std::string>().find("--enable-sleep-mode"),
              std::string::npos)
        << path;
  }
  const auto exchange = test::FakeExchange::make("", "/sleep");
  answer_sleep(context(), exchange);
  ASSERT_TRUE(exchange->wait());
  EXPECT_EQ(exchange->status(), 501);
  EXPECT_EQ(send("GET", "/is_sleeping")->body(), R"({"is_sleeping":false})");
}

TEST_F(SleepHandlers, LevelsAndModesAreChecked) {
  for (const http::Headers& query : {http::Headers{{"level", "3"}}, {{"mode", "keep"}}}) {
    const auto exchange = begin("POST", "/sleep", "", query);
    ASSERT_TRUE(exchange->wait());
    EXPECT_EQ(exchange->status(), 400);
  }
  const auto weights = begin("POST", "/wake_up", "", {{"tags", "weights"}});
  ASSERT_TRUE(weights->wait());
  EXPECT_EQ(weights->status(), 501);
}

}  // namespace
}  // namespace foretoken
