#include "serve/llamacpp/llama_format.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

LlamaRequest asked(int num_probs = 0) {
  LlamaRequest request;
  request.num_probs = num_probs;
  request.text.requests.resize(1);
  request.text.requests.front().sampling.stop = {"end"};
  return request;
}

RequestOutput output(const std::string& text, std::vector<int32_t> ids, bool finished = true) {
  RequestOutput one;
  one.text = text;
  one.token_ids = std::move(ids);
  one.finished = one.request_finished = finished;
  one.finish_reason = finished ? FinishReason::kStop : FinishReason::kNone;
  one.stats.num_prompt_tokens = 4;
  one.stats.num_cached_tokens = 1;
  one.stats.num_output_tokens = 2;
  return one;
}

json whole(const LlamaRequest& request, const RequestOutput& one) {
  OutputSum sum;
  sum.add(one);
  LlamaFormat format(request, {"prompt"}, {.id = "x", .model = "m"});
  return json::parse(format.whole({&sum}));
}

TEST(LlamaFormat, SaysHowItStopped) {
  RequestOutput one = output("a\nb", {7, 8});
  json body = whole(asked(), one);
  EXPECT_EQ(body["stop_type"], "eos");
  EXPECT_EQ(body["has_new_line"], true);
  EXPECT_EQ(body["tokens"], json::array());
  EXPECT_EQ(body["prompt"], "prompt");
  EXPECT_EQ(body["tokens_cached"], 1);
  EXPECT_EQ(body["timings"]["prompt_n"], 3);
  one.stop_reason = "end";
  body = whole(asked(), one);
  EXPECT_EQ(body["stop_type"], "word");
  EXPECT_EQ(body["stopping_word"], "end");
  one.finish_reason = FinishReason::kLength;
  EXPECT_EQ(whole(asked(), one)["stop_type"], "limit");
}

TEST(LlamaFormat, ProbabilitiesHaveIds) {
  RequestOutput one = output("a", {7});
  one.logprobs = {{{7, -0.5f, 1, "a"}, {{7, -0.5f, 1, "a"}, {9, -1.0f, 2, "b"}}}};
  const json told = whole(asked(2), one)["completion_probabilities"];
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0]["id"], 7);
  EXPECT_EQ(told[0]["logprob"], -0.5);
  EXPECT_EQ(told[0]["top_logprobs"][1]["id"], 9);
  EXPECT_EQ(told[0]["top_logprobs"][1]["token"], "b");
}

TEST(LlamaFormat, StreamsEndWithEverythingElse) {
  LlamaRequest request = asked();
  request.text.stream = true;
  LlamaFormat format(request, {"prompt"}, {.id = "x", .model = "m"});
  ChoiceOutput news;
  news.add(output("a", {7}, false));
  const std::string first = format.events(0, news);
  EXPECT_EQ(first.rfind("data: {", 0), 0u);
  EXPECT_EQ(json::parse(first.substr(6))["stop"], false);
  ChoiceOutput last;
  last.add(output("b", {8}));
  const std::string rest = format.events(0, last);
  const size_t second = rest.find("data: ", 6);
  ASSERT_NE(second, std::string::npos);
  EXPECT_EQ(json::parse(rest.substr(6, second - 6))["content"], "b");
  const json end = json::parse(rest.substr(second + 6));
  EXPECT_EQ(end["content"], "");
  EXPECT_EQ(end["stop"], true);
  EXPECT_EQ(format.last_events(), "");
}

TEST(LlamaFormat, NoOutputIsWanted) {
  LlamaRequest request = asked();
  request.no_output = true;
  const json body = whole(request, output("a", {7}));
  EXPECT_EQ(body["content"], "");
  EXPECT_EQ(body["tokens_predicted"], 0);
}

}  // namespace
}  // namespace foretoken
