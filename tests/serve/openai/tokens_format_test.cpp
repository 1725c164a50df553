#include "serve/openai/tokens_format.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

OpenAiRequest tokens_request(std::optional<int> logprobs = {}) {
  OpenAiRequest request;
  request.kind = OpenAiKind::kCompletion;
  request.requests.resize(1);
  request.requests[0].sampling.logprobs = logprobs;
  return request;
}

ChoiceOutput step_of(std::vector<int32_t> ids, bool last) {
  ChoiceOutput news;
  for (const int32_t id : ids) news.output.logprobs.push_back({{id, -1.0f, 1, "x"}, {}});
  news.output.token_ids = std::move(ids);
  news.output.finished = news.output.request_finished = last;
  if (last) news.output.finish_reason = FinishReason::kLength;
  news.output.stats.num_prompt_tokens = 3;
  news.output.stats.num_output_tokens = last ? 3 : 2;
  return news;
}

json sent_tokens(const std::string& text) { return json::parse(text.substr(text.find('{'))); }

TEST(CompletionOfTokens, HasTheIdsAndTheParameters) {
  const auto made = completion_of_tokens(json::parse(
      R"({"token_ids": [1, 2], "sampling_params": {"temperature": 0, "detokenize": false},
          "model": "m", "features": null, "stream": true})"));
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(json::parse(R"({"temperature": 0, "max_tokens": -1, "model": "m", "stream": true,
                            "prompt": [1, 2]})"),
            made.value());
  const auto shorter = completion_of_tokens(
      json::parse(R"({"token_ids": [1], "sampling_params": {"max_tokens": 5}})"));
  ASSERT_TRUE(shorter.ok());
  EXPECT_EQ(shorter.value()["max_tokens"], 5);
}

TEST(CompletionOfTokens, WantsIdsAndParameters) {
  for (const char* text :
       {R"({"sampling_params": {}})", R"({"token_ids": [], "sampling_params": {}})",
        R"({"token_ids": ["a"], "sampling_params": {}})"}) {
    const Status status = completion_of_tokens(json::parse(text)).status();
    EXPECT_NE(status.message().find("'token_ids'"), std::string::npos) << text;
  }
  const Status status = completion_of_tokens(json::parse(R"({"token_ids": [1]})")).status();
  EXPECT_NE(status.message().find("'sampling_params'"), std::string::npos);
}

TEST(TokensFormat, AWholeAnswerHasIds) {
  OutputSum sum;
  sum.add(step_of({5, 6}, true).output);
  TokensFormat format(tokens_request(0), "r");
  const json body = json::parse(format.whole({&sum}));
  EXPECT_EQ(body["request_id"], "r");
  const json& choice = body["choices"][0];
  EXPECT_EQ(choice["token_ids"], (json{5, 6}));
  EXPECT_EQ(choice["finish_reason"], "length");
  ASSERT_EQ(choice["logprobs"]["content"].size(), 2u);
  EXPECT_EQ(choice["logprobs"]["content"][1]["token"], "token_id:6");
  EXPECT_EQ(choice["logprobs"]["content"][1]["top_logprobs"][0]["token"], "token_id:6");
  EXPECT_TRUE(body["prompt_logprobs"].is_null());
}

TEST(TokensFormat, AStreamHasTheIdsThatCame) {
  OpenAiRequest request = tokens_request();
  request.include_usage = true;
  TokensFormat format(request, "r");
  const json first = sent_tokens(format.events(0, step_of({5, 6}, false)));
  EXPECT_EQ(first["choices"][0]["token_ids"], (json{5, 6}));
  EXPECT_TRUE(first["choices"][0]["logprobs"].is_null());
  EXPECT_TRUE(first["choices"][0]["finish_reason"].is_null());
  const json last = sent_tokens(format.events(0, step_of({7}, true)));
  EXPECT_EQ(last["choices"][0]["finish_reason"], "length");
  const std::string end = format.last_events();
  EXPECT_NE(end.find("\"completion_tokens\":3"), std::string::npos) << end;
  EXPECT_TRUE(end.ends_with("data: [DONE]\n\n"));
}

TEST(TokensFormat, ErrorsHaveOpenAisForm) {
  TokensFormat format(tokens_request(), "r");
  EXPECT_EQ(json::parse(format.error(invalid_argument("'x' is wrong")))["error"]["param"], "x");
  EXPECT_NE(format.error_events(internal_error("broken")).find("[DONE]"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
