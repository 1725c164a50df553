#include "serve/openai/fim_format.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

OpenAiRequest gap() {
  OpenAiRequest request;
  request.kind = OpenAiKind::kCompletion;
  request.requests.resize(1);
  return request;
}

ChoiceOutput piece(const std::string& text, bool last) {
  ChoiceOutput news;
  news.output.text = text;
  news.output.finished = news.output.request_finished = last;
  if (last) news.output.finish_reason = FinishReason::kStop;
  news.output.stats.num_prompt_tokens = 3;
  news.output.stats.num_output_tokens = last ? 2 : 1;
  return news;
}

json event(const std::string& text) { return json::parse(text.substr(text.find('{'))); }

TEST(FimFormat, AWholeAnswerHasAMessage) {
  OutputSum sum;
  sum.add(piece("between", true).output);
  FimFormat format(gap(), {.id = "fim-1", .model = "m"});
  const json body = json::parse(format.whole({&sum}));
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(body["choices"][0]["message"]["content"], "between");
  EXPECT_EQ(body["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
  EXPECT_FALSE(body["choices"][0].contains("text"));
  EXPECT_EQ(body["usage"]["prompt_tokens"], 3);
}

TEST(FimFormat, AStreamHasDeltasAndTheUsageAtItsEnd) {
  FimFormat format(gap(), {.id = "fim-1", .model = "m"});
  const json first = event(format.events(0, piece("be", false)));
  EXPECT_EQ(first["object"], "chat.completion.chunk");
  EXPECT_EQ(first["choices"][0]["delta"], (json{{"role", "assistant"}, {"content", "be"}}));
  EXPECT_TRUE(first["choices"][0]["finish_reason"].is_null());
  EXPECT_FALSE(first.contains("usage"));
  const json last = event(format.events(0, piece("tween", true)));
  EXPECT_EQ(last["choices"][0]["delta"], (json{{"content", "tween"}}));
  EXPECT_EQ(last["usage"]["completion_tokens"], 2);
  EXPECT_EQ(format.last_events(), "data: [DONE]\n\n");
}

TEST(FimFormat, ErrorsHaveOpenAisForm) {
  FimFormat format(gap(), {.id = "fim-1", .model = "m"});
  EXPECT_EQ(json::parse(format.error(invalid_argument("'x' is wrong")))["error"]["param"], "x");
  EXPECT_NE(format.error_events(internal_error("broken")).find("[DONE]"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
