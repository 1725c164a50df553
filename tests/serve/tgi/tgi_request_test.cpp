#include "serve/tgi/tgi_request.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

Result<TgiRequest> parse(const char* text, bool strict = false) {
  OpenAiDefaults defaults;
  defaults.max_model_len = 1000;
  defaults.sampling.top_p = 0.5f;
  defaults.strict_fields = strict;
  return parse_tgi_request(json::parse(text), defaults);
}

TEST(TgiRequest, NamesOfSampling) {
  const auto parsed = parse(R"({"inputs": "a", "parameters": {"max_new_tokens": 7,
    "temperature": 0.5, "top_k": 3, "stop": ["x"], "seed": 5, "truncate": 9, "details": true,
    "decoder_input_details": true, "top_n_tokens": 2, "return_full_text": true, "best_of": 1,
    "watermark": false, "grammar": {"type": "regex", "value": "[ab]"}}})",
                            true);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const TgiRequest& request = parsed.value();
  const Request& one = request.text.requests.front();
  EXPECT_EQ(one.prompt, "a");
  EXPECT_EQ(one.truncate_prompt_tokens, 9);
  EXPECT_EQ(one.sampling.max_tokens, 7);
  EXPECT_EQ(one.sampling.temperature, 0.5f);
  EXPECT_EQ(one.sampling.top_k, 3);
  EXPECT_EQ(one.sampling.top_p, 1.0f);
  EXPECT_EQ(one.sampling.stop, std::vector<std::string>{"x"});
  EXPECT_TRUE(one.sampling.include_stop_str_in_output);
  EXPECT_EQ(one.sampling.structured_outputs->regex, "[ab]");
  EXPECT_EQ(one.sampling.logprobs, 2);
  EXPECT_EQ(one.sampling.prompt_logprobs, 0);
  EXPECT_TRUE(request.full_text);
}

TEST(TgiRequest, DrawsWhereTheyAreAskedForOrShaped) {
  for (const auto& [parameters, temperature] : std::vector<std::pair<const char*, float>>{
           {R"({})", 1.0f},
           {R"({"max_new_tokens": 5})", 0.0f},
           {R"({"temperature": 1.0})", 0.0f},
           {R"({"do_sample": true})", 1.0f},
           {R"({"do_sample": true, "temperature": 0.25})", 0.25f},
           {R"({"temperature": 0.25})", 0.25f},
           {R"({"temperature": 0})", 0.0f},
           {R"({"top_k": 5})", 1.0f},
           {R"({"top_p": 0.25})", 1.0f},
           {R"({"do_sample": null, "seed": 3})", 0.0f}}) {
    const std::string body = std::string(R"({"inputs": "a", "parameters": )") + parameters + "}";
    const auto parsed = parse(body.c_str());
    ASSERT_TRUE(parsed.ok()) << body << parsed.status().message();
    EXPECT_EQ(parsed.value().text.requests.front().sampling.temperature, temperature) << body;
  }
}

TEST(TgiRequest, LengthsAndForms) {
  const auto sampling_of = [](const char* body) {
    auto parsed = parse(body);
    EXPECT_TRUE(parsed.ok()) << body << parsed.status().message();
    return parsed.value().text.requests.front().sampling;
  };
  EXPECT_EQ(sampling_of(R"({"inputs": "a"})").max_tokens, 100);
  EXPECT_EQ(sampling_of(R"({"inputs": "a", "stream": true})").logprobs, 0);
  EXPECT_FALSE(sampling_of(R"({"inputs": "a"})").logprobs.has_value());
  EXPECT_FALSE(sampling_of(R"({"inputs": "a", "parameters": {"grammar":
    {"type": "json", "value": {"type": "object"}}}})")
                   .structured_outputs->json.empty());
  EXPECT_FALSE(sampling_of(R"({"inputs": "a", "parameters": {"grammar":
    {"type": "json_schema", "value": {"name": "x", "schema": {"type": "object"}}}}})")
                   .structured_outputs->json.empty());
}

TEST(TgiRequest, ErrorsNameWhatIsWrong) {
  for (const auto& [text, part] : std::vector<std::pair<const char*, const char*>>{
           {R"({})", "'inputs' must be the text"},
           {R"({"inputs": ["a", "b"]})", "'inputs' must be the text"},
           {R"({"inputs": "a", "parameters": 3})", "'parameters' must be an object"},
           {R"({"inputs": "a", "parameters": {"max_new_tokens": 0}})", "at least 1"},
           {R"({"inputs": "a", "parameters": {"top_n_tokens": -1}})", "at least 0"},
           {R"({"inputs": "a", "parameters": {"grammar": "x"}})", "'grammar' must be"},
           {R"({"inputs": "a", "parameters": {"temperature": "warm"}})", "'temperature'"}}) {
    const auto parsed = parse(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_NE(parsed.status().message().find(part), std::string::npos) << parsed.status().message();
  }
  const auto passed_over = parse(R"({"inputs": "a", "parameters": {"best_of": 2,
    "typical_p": 0.9, "watermark": true, "nonsense": 1}})");
  ASSERT_TRUE(passed_over.ok());
  EXPECT_EQ(passed_over.value().text.warnings.size(), 4u);
}

}  // namespace
}  // namespace foretoken
