#include "serve/openai/foreign_fields.h"

#include <gtest/gtest.h>

#include "serve/flow/chat_of.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

using test::chat_of;
using test::read_chat;

SamplingParams sampling_of(const json& more) {
  const OpenAiRequest request = read_chat(more);
  EXPECT_TRUE(request.warnings.empty()) << more.dump() << ": " << request.warnings.front();
  return request.requests.front().sampling;
}

TEST(ForeignFields, PlaceholdersOfAModelsName) {
  for (const char* name : {"dummy", "tgi", "default", "default_model", "local-model"}) {
    EXPECT_TRUE(check_model_name(name, {"served"}).ok()) << name;
  }
  EXPECT_FALSE(check_model_name("dummy-7b", {"served"}).ok());
  EXPECT_FALSE(is_placeholder_model("served"));
}

TEST(ForeignFields, SamplingByOtherNames) {
  EXPECT_FLOAT_EQ(sampling_of({{"repeat_penalty", 1.25}}).repetition_penalty, 1.25F);
  EXPECT_FLOAT_EQ(
      sampling_of({{"repeat_penalty", 1.25}, {"repetition_penalty", 1.5}}).repetition_penalty,
      1.5F);
  EXPECT_EQ(sampling_of({{"n_predict", 7}}).max_tokens, 7);
  EXPECT_EQ(sampling_of({{"n_predict", 7}, {"max_tokens", 9}}).max_tokens, 9);
  for (const char* name : {"max_tokens", "max_completion_tokens", "n_predict"}) {
    EXPECT_EQ(sampling_of({{name, -1}}).max_tokens, 1000) << name;
  }
  EXPECT_EQ(sampling_of({{"logit_bias", {{5, -1.5}, {6, false}}}}).logit_bias,
            (std::vector<std::pair<int32_t, float>>{{5, -1.5F}, {6, -100}}));
  EXPECT_EQ(read_chat({{"logit_bias", {{"cat", false}, {5, 1}}}}).text_biases,
            (std::vector<std::pair<std::string, float>>{{"cat", -100}}));
  EXPECT_FALSE(chat_of(json::parse(R"({"logit_bias": [["cat", "x"]]})")).ok());
  EXPECT_EQ(sampling_of({{"n_probs", 3}}).logprobs, 3);
  EXPECT_EQ(sampling_of({{"seed", -1}}).seed, std::nullopt);
}

TEST(ForeignFields, SglangsNames) {
  EXPECT_TRUE(sampling_of({{"no_stop_trim", true}}).include_stop_str_in_output);
  EXPECT_EQ(read_chat({{"rid", "mine"}}).request_id, "mine");
  EXPECT_EQ(read_chat({{"rid", "mine"}, {"request_id", "ours"}}).request_id, "ours");
  for (const bool apart : {true, false}) {
    const json body = {{"messages", {{{"role", "user"}, {"content", "a"}}}},
                       {"separate_reasoning", apart}};
    OpenAiDefaults defaults;
    defaults.reasoning_parser = "deepseek_r1";
    const auto request = parse_openai_request(OpenAiKind::kChat, body, defaults);
    ASSERT_TRUE(request.ok()) << request.status().message();
    EXPECT_EQ(request.value().parser.reasoning_parser, apart ? "deepseek_r1" : "");
    EXPECT_TRUE(request.value().warnings.empty());
  }
}

TEST(ForeignFields, OllamasOptions) {
  const json options = {{"num_predict", 5}, {"repeat_penalty", 1.25}, {"seed", 3},
                        {"top_k", 2},       {"stop", {"a"}},          {"num_thread", 4}};
  const SamplingParams sampling = sampling_of({{"options", options}, {"keep_alive", "5m"}});
  EXPECT_EQ(sampling.max_tokens, 5);
  EXPECT_FLOAT_EQ(sampling.repetition_penalty, 1.25F);
  EXPECT_EQ(sampling.seed, 3u);
  EXPECT_EQ(sampling.top_k, 2);
  EXPECT_EQ(sampling.stop, std::vector<std::string>{"a"});
  EXPECT_EQ(sampling_of({{"options", {{"num_predict", -1}}}}).max_tokens, 1000);
  EXPECT_EQ(sampling_of({{"options", {{"seed", 3}}}, {"seed", 4}}).seed, 4u);
  EXPECT_EQ(read_chat({{"options", {{"mirostat", 1}, {"zebra", 1}}}}).warnings,
            (std::vector<std::string>{"'options': 'mirostat' is not applied here",
                                      "'options': 'zebra' is unknown and was passed over"}));
  EXPECT_FALSE(chat_of({{"options", 3}}).ok());
}

// Clients send all settings they have; only those that would change something are told.
TEST(ForeignFields, SamplersThatAreMissingAreToldUnlessNeutral) {
  sampling_of({{"typical_p", 1.0},
               {"mirostat", 0},
               {"dry_multiplier", 0.0},
               {"dry_base", 1.75},
               {"xtc_probability", 0},
               {"xtc_threshold", 0.1},
               {"dynatemp_range", 0},
               {"repeat_last_n", 64},
               {"cache_prompt", true},
               {"id_slot", -1},
               {"timings_per_token", false},
               {"samplers", json::array()},
               {"lora", json::array()}});
  for (const char* name : {"typical_p", "dry_multiplier", "xtc_probability", "mirostat"}) {
    EXPECT_EQ(read_chat({{name, 2}}).warnings,
              std::vector<std::string>{"'" + std::string(name) + "' is not applied here"});
    EXPECT_FALSE(chat_of({{name, 2}}, true).ok()) << name;
  }
  EXPECT_EQ(read_chat({{"repeat_last_n", 64}, {"repeat_penalty", 1.1}}).warnings.size(), 1u);
  EXPECT_TRUE(read_chat({{"repeat_last_n", -1}, {"repeat_penalty", 1.1}}).warnings.empty());
}

StructuredOutputs form_of(const json& more) {
  return sampling_of(more).structured_outputs.value_or(StructuredOutputs());
}

TEST(ForeignFields, FormsOfTheOutput) {
  EXPECT_EQ(form_of({{"grammar", "root ::= \"a\""}}).grammar, "root ::= \"a\"");
  EXPECT_EQ(form_of({{"json_schema", {{"type", "object"}}}}).json, R"({"type":"object"})");
  EXPECT_EQ(form_of({{"format", {{"type", "object"}}}}).json, R"({"type":"object"})");
  EXPECT_TRUE(form_of({{"format", "json"}}).json_object);
  EXPECT_EQ(
      form_of({{"grammar", "root ::= \"a\""}, {"response_format", {{"type", "text"}}}}).grammar,
      "root ::= \"a\"");
  EXPECT_FALSE(
      read_chat({{"grammar", ""}}).requests.front().sampling.structured_outputs.has_value());
  // A constraint is never dropped.
  EXPECT_FALSE(
      chat_of({{"grammar", "root ::= \"a\""}, {"json_schema", {{"type", "object"}}}}).ok());
  EXPECT_FALSE(chat_of({{"format", "json"}, {"response_format", {{"type", "json_object"}}}}).ok());
  EXPECT_FALSE(chat_of({{"grammar", 3}}).ok());
}

TEST(ForeignFields, PredictionsAreTextOrParts) {
  const auto text = [](const json& content) {
    return read_chat({{"prediction", {{"type", "content"}, {"content", content}}}})
        .requests.front()
        .prediction;
  };
  EXPECT_EQ(text("abc"), "abc");
  EXPECT_EQ(text({{{"type", "text"}, {"text", "ab"}}, {{"type", "text"}, {"text", "c"}}}), "abc");
  EXPECT_FALSE(chat_of({{"prediction", "abc"}}).ok());
  EXPECT_FALSE(chat_of({{"prediction", {{"type", "content"}, {"content", 3}}}}).ok());
}

}  // namespace
}  // namespace foretoken
