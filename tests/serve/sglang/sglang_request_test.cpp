#include "serve/sglang/sglang_request.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

Result<SglangRequest> parse(const char* text, bool strict = false) {
  OpenAiDefaults defaults;
  defaults.max_model_len = 1000;
  defaults.strict_fields = strict;
  return parse_sglang_request(json::parse(text), defaults);
}

TEST(SglangRequest, NamesOfSampling) {
  const auto parsed = parse(R"({"text": "a", "sampling_params": {"max_new_tokens": 7,
    "min_new_tokens": 2, "temperature": 0.5, "top_k": 3, "stop": "x", "no_stop_trim": true,
    "sampling_seed": 5, "regex": "[ab]"}, "return_logprob": true, "top_logprobs_num": 2,
    "logprob_start_len": 0})",
                            true);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const SglangRequest& request = parsed.value();
  const SamplingParams& sampling = request.text.requests.front().sampling;
  EXPECT_EQ(sampling.max_tokens, 7);
  EXPECT_EQ(sampling.min_tokens, 2);
  EXPECT_EQ(sampling.top_k, 3);
  EXPECT_EQ(sampling.stop, std::vector<std::string>{"x"});
  EXPECT_TRUE(sampling.include_stop_str_in_output);
  EXPECT_EQ(sampling.seed, 5u);
  EXPECT_EQ(sampling.structured_outputs->regex, "[ab]");
  EXPECT_EQ(sampling.logprobs, 2);
  EXPECT_EQ(sampling.prompt_logprobs, 2);
  EXPECT_FALSE(request.is_list);
}

TEST(SglangRequest, PromptsOfEveryForm) {
  const auto alone = parse(R"({"input_ids": [1, 2], "sampling_params": {"max_new_tokens": 0}})");
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  EXPECT_TRUE(alone.value().no_output);
  EXPECT_FALSE(alone.value().is_list);
  EXPECT_EQ(alone.value().text.requests.front().prompt_token_ids, (std::vector<int32_t>{1, 2}));
  const auto two = parse(R"({"input_ids": [[1], [2, 3]],
                             "sampling_params": [{"top_p": 0.5}, {"top_p": 0.5}]})");
  ASSERT_TRUE(two.ok()) << two.status().message();
  EXPECT_TRUE(two.value().is_list);
  EXPECT_EQ(two.value().text.requests.size(), 2u);
  EXPECT_EQ(two.value().text.requests[1].sampling.max_tokens, 128);
  EXPECT_TRUE(parse(R"({"text": ["a"]})").value().is_list);
  EXPECT_TRUE(parse(R"({"text": ["a", "b"], "lora_path": [null, null]})").ok());
}

TEST(SglangRequest, ErrorsNameWhatIsWrong) {
  for (const auto& [text, part] : std::vector<std::pair<const char*, const char*>>{
           {R"({})", "'text' or 'input_ids'"},
           {R"({"text": "a", "input_ids": [1]})", "one of the two"},
           {R"({"text": ["a", "b"], "sampling_params": [{"n": 1}, {"n": 2}]})", "the same for all"},
           {R"({"text": "a", "sampling_params": 3})", "must be an object"},
           {R"({"text": "a", "sampling_params": {"max_new_tokens": -1}})", "at least 0"},
           {R"({"text": "a", "sampling_params": {"regex": "a", "ebnf": "root ::= \"a\""}})",
            "may have one of"},
           {R"({"text": "a", "logprob_start_len": -2})", "at least -1"},
           {R"({"input_ids": "a"})", "'input_ids' must be a list"},
           {R"({"text": [1, 2]})", "'text' must be a string"},
           {R"({"text": ["a", "b"], "lora_path": ["x", null]})", "'lora_path' must be the same"},
           {R"({"text": "a", "lora_path": 3})", "an adapter's name"},
           {R"({"text": "a", "image_data": "x"})", "'image_data'"}}) {
    const auto parsed = parse(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_NE(parsed.status().message().find(part), std::string::npos) << parsed.status().message();
  }
  EXPECT_EQ(
      parse(R"({"text": "a", "sampling_params": {"max_tokens": 3}})").value().text.warnings.size(),
      1u);
}

}  // namespace
}  // namespace foretoken
