#include "serve/sglang/sglang_format.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

SglangFormat format_of(const char* body) {
  OpenAiDefaults defaults;
  defaults.max_model_len = 1000;
  SglangRequest request = parse_sglang_request(json::parse(body), defaults).value();
  OpenAiLabel label;
  label.id = "r";
  return SglangFormat(std::move(request), label);
}

RequestOutput output_of(const char* text, std::vector<int32_t> ids) {
  RequestOutput output;
  output.text = text;
  output.token_ids = std::move(ids);
  output.stats.num_prompt_tokens = 2;
  output.stats.num_output_tokens = static_cast<int64_t>(output.token_ids.size());
  for (const int32_t id : output.token_ids) {
    output.logprobs.push_back({{id, -0.5f, 1, "t"}, {{id, -0.5f, 1, "t"}}});
  }
  return output;
}

TEST(SglangFormat, AWholeAnswer) {
  SglangFormat format = format_of(R"({"input_ids": [7, 8], "return_logprob": true,
    "top_logprobs_num": 1, "logprob_start_len": 0, "return_text_in_logprobs": true})");
  RequestOutput output = output_of("ab", {5, 6});
  output.prompt_logprobs.push_back({{8, -1.5f, 2, "p"}, {{9, -0.25f, 1, "q"}}});
  output.finished = true;
  output.finish_reason = FinishReason::kLength;
  OutputSum sum;
  sum.add(output);
  const json answer = json::parse(format.whole({&sum}));
  EXPECT_EQ(answer["text"], "ab");
  EXPECT_EQ(answer["output_ids"], (json{5, 6}));
  const json& meta = answer["meta_info"];
  EXPECT_EQ(meta["id"], "r");
  EXPECT_EQ(meta["finish_reason"], (json{{"type", "length"}, {"length", 2}}));
  EXPECT_EQ(meta["input_token_logprobs"], json::parse(R"([[null, 7, null], [-1.5, 8, "p"]])"));
  EXPECT_EQ(meta["input_top_logprobs"], json::parse(R"([null, [[-0.25, 9, "q"]]])"));
  EXPECT_EQ(meta["output_token_logprobs"], json::parse(R"([[-0.5, 5, "t"], [-0.5, 6, "t"]])"));
}

TEST(SglangFormat, EventsHaveAllThatCame) {
  SglangFormat format = format_of(R"({"text": ["x"], "stream": true})");
  ChoiceOutput news;
  news.add(output_of("a", {5}));
  EXPECT_NE(format.events(0, news).find("\"text\":\"a\""), std::string::npos);
  ChoiceOutput last;
  last.output = output_of("b", {0});
  last.output.finished = true;
  last.output.finish_reason = FinishReason::kStop;
  const std::string event = format.events(0, last);
  ASSERT_TRUE(event.starts_with("data: "));
  const json told = json::parse(event.substr(6));
  EXPECT_EQ(told["text"], "ab");
  EXPECT_EQ(told["output_ids"], (json{5, 0}));
  EXPECT_EQ(told["index"], 0);
  EXPECT_EQ(told["meta_info"]["finish_reason"], (json{{"type", "stop"}, {"matched", 0}}));
  EXPECT_EQ(format.last_events(), "data: [DONE]\n\n");
}

}  // namespace
}  // namespace foretoken
