#include "serve/tgi/tgi_format.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr int32_t kEnd = 2;

TgiFormat format_of(const char* body, bool as_list = false) {
  OpenAiDefaults defaults;
  defaults.max_model_len = 1000;
  TgiRequest request = parse_tgi_request(json::parse(body), defaults).value();
  return TgiFormat(std::move(request), as_list, [](int32_t id) { return id == kEnd; });
}

RequestOutput output_of(const char* text,
                        const std::vector<std::pair<int32_t, const char*>>& tokens) {
  RequestOutput output;
  output.text = text;
  for (const auto& [id, token] : tokens) {
    output.token_ids.push_back(id);
    output.logprobs.push_back({{id, -0.5f, 1, token}, {{id, -0.5f, 1, token}}});
  }
  output.stats.num_prompt_tokens = 3;
  output.stats.num_output_tokens = static_cast<int64_t>(tokens.size());
  return output;
}

RequestOutput ended(RequestOutput output, FinishReason why, const char* stop = "") {
  output.finished = true;
  output.finish_reason = why;
  output.stop_reason = stop;
  return output;
}

json events_of(TgiFormat* format, RequestOutput output) {
  ChoiceOutput news;
  news.output = std::move(output);
  json all = json::array();
  std::string text = format->events(0, news);
  for (size_t at = 0; (at = text.find("data: ", at)) != std::string::npos; at += 6) {
    all.push_back(json::parse(text.substr(at + 6, text.find('\n', at) - at - 6)));
  }
  return all;
}

TEST(TgiFormat, AWholeAnswer) {
  OutputSum sum;
  RequestOutput output =
      ended(output_of(" a cat", {{5, " a"}, {6, " cat"}, {kEnd, "</s>"}}), FinishReason::kStop);
  output.prompt_logprobs.push_back({{8, -1.5f, 2, "p"}, {}});
  sum.add(output);
  TgiFormat plain = format_of(R"({"inputs": "x", "parameters": {"return_full_text": true}})");
  EXPECT_EQ((json{{"generated_text", "x a cat"}}), json::parse(plain.whole({&sum})));
  TgiFormat format = format_of(R"({"inputs": "x", "parameters": {"details": true,
    "decoder_input_details": true, "seed": 4, "temperature": 0.5, "top_n_tokens": 1}})",
                               true);
  const json answer = json::parse(format.whole({&sum}));
  ASSERT_EQ(answer.size(), 1u);
  EXPECT_EQ(answer[0]["generated_text"], " a cat");
  const json& details = answer[0]["details"];
  EXPECT_EQ(details["finish_reason"], "eos_token");
  EXPECT_EQ(details["generated_tokens"], 3);
  EXPECT_EQ(details["seed"], 4);
  EXPECT_EQ(details["prefill"], json::parse(R"([{"id": 8, "text": "p", "logprob": -1.5}])"));
  EXPECT_EQ(details["tokens"], json::parse(R"([
    {"id": 5, "text": " a", "logprob": -0.5, "special": false},
    {"id": 6, "text": " cat", "logprob": -0.5, "special": false},
    {"id": 2, "text": "</s>", "logprob": -0.5, "special": true}])"));
  EXPECT_EQ(details["top_tokens"].size(), 3u);
}

TEST(TgiFormat, AnEventForEachToken) {
  TgiFormat format = format_of(R"({"inputs": "x", "stream": true})");
  const json first = events_of(&format, output_of(" a cat", {{5, " a"}, {6, " cat"}}));
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0]["index"], 1);
  EXPECT_EQ(first[1]["token"]["text"], " cat");
  EXPECT_TRUE(first[1]["generated_text"].is_null());
  EXPECT_TRUE(first[1]["details"].is_null());
  const json last =
      events_of(&format, ended(output_of(".", {{7, "."}, {kEnd, "</s>"}}), FinishReason::kStop));
  ASSERT_EQ(last.size(), 2u);
  EXPECT_TRUE(last[0]["generated_text"].is_null());
  EXPECT_EQ(last[1]["token"]["special"], true);
  EXPECT_EQ(last[1]["generated_text"], " a cat.");
  EXPECT_EQ(last[1]["details"]["finish_reason"], "eos_token");
  EXPECT_EQ(last[1]["details"]["input_length"], 3);
  EXPECT_EQ("", format.last_events());
}

// Parts of a character, a blank that the first token loses, text behind its token.
TEST(TgiFormat, TextsOfTokensMakeTheText) {
  TgiFormat format = format_of(R"({"inputs": "x", "stream": true})");
  std::string text;
  for (const RequestOutput& output :
       {output_of("Once", {{5, " Once"}}), output_of("\u65e5", {{6, ""}, {7, ""}, {8, "\ufffd"}}),
        ended(output_of("ing", {}), FinishReason::kLength)}) {
    for (const json& event : events_of(&format, output)) {
      if (!event["token"]["special"]) text += event["token"]["text"].get<std::string>();
    }
  }
  EXPECT_EQ(text, "Once\u65e5ing");
}

TEST(TgiFormat, EndsWithoutATokenAndErrors) {
  TgiFormat format = format_of(R"({"inputs": "x", "stream": true})");
  const json end = events_of(&format, ended(output_of("", {}), FinishReason::kStop, "x"));
  ASSERT_EQ(end.size(), 1u);
  EXPECT_EQ(end[0]["details"]["finish_reason"], "stop_sequence");
  EXPECT_EQ((json{{"error", "no"}, {"error_type", "validation"}}),
            json::parse(format.error(ServeError(invalid_argument("no")))));
  EXPECT_EQ("overloaded", tgi_error(ServeError(429, resource_exhausted("full")))["error_type"]);
  EXPECT_TRUE(format.error_events(ServeError(500, internal_error("x"))).starts_with("data: "));
}

}  // namespace
}  // namespace foretoken
