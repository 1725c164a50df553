#include "serve/flow/keep_alive.h"

#include <gtest/gtest.h>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using std::chrono::milliseconds;
using test::json;

class KeepAliveTest : public test::ServeRig {
 protected:
  // A stream whose second event comes with its end.
  static std::string silent_request(bool stream = true) {
    return json{
        {"prompt", "Once"}, {"max_tokens", 100},        {"ignore_eos", true},     {"seed", 1},
        {"stream", stream}, {"stream_interval", 10000}, {"request_id", "silent"}, {"n", 4}}
        .dump();
  }
  static std::string without_comments(std::string text) {
    const std::string comment = ": keep-alive\n\n";
    for (size_t at = 0; (at = text.find(comment)) != std::string::npos;) {
      text.erase(at, comment.size());
    }
    return text;
  }
  // As the stream is without it; times and drafts may differ.
  static std::vector<std::string> texts(const std::string& stream) {
    std::vector<std::string> all(4);
    for (const json& event : events(stream)) {
      for (const json& choice : event["choices"]) {
        all[choice["index"].get<size_t>()] += choice["text"].get<std::string>();
      }
    }
    return all;
  }
};

TEST_F(KeepAliveTest, SilentStreamsHaveComments) {
  const std::string plain = send("POST", "/v1/completions", silent_request())->body();
  EXPECT_EQ(plain.find(": keep-alive"), std::string::npos);
  ServeConfig config = base_config();
  config.keep_alive = milliseconds(1);
  start(std::move(config));
  steps().close();
  const auto exchange = begin("POST", "/v1/completions", silent_request());
  ASSERT_TRUE(exchange->wait_for_bytes(1));
  steps().open();
  ASSERT_TRUE(exchange->wait());
  EXPECT_EQ(exchange->status(), 200);
  const std::string text = exchange->body();
  EXPECT_NE(text.find(": keep-alive\n\n"), std::string::npos);
  EXPECT_EQ(texts(without_comments(text)), texts(plain));
  EXPECT_TRUE(text.ends_with("data: [DONE]\n\n"));
  const auto whole = send("POST", "/v1/completions", silent_request(false));
  EXPECT_TRUE(json::accept(whole->body()));
}

TEST_F(KeepAliveTest, EndedStreamsAndShortSilencesHaveNone) {
  steps().close();
  const auto exchange = begin("POST", "/v1/completions", silent_request());
  steps().let(1);
  ASSERT_TRUE(exchange->wait_for_bytes(1));
  const auto found = context().generations.find("cmpl-silent");
  ASSERT_EQ(found.size(), 1u);
  found.front()->keep_alive(std::chrono::hours(1));
  steps().open();
  ASSERT_TRUE(exchange->wait());
  ASSERT_TRUE(wait_idle());
  const std::string text = exchange->body();
  EXPECT_EQ(text.find(": keep-alive"), std::string::npos);
  found.front()->keep_alive(milliseconds(0));
  EXPECT_EQ(exchange->body(), text);
}

}  // namespace
}  // namespace foretoken
