#include "serve/openai/cohere_embed.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

CohereEmbedRequest parsed_embed(const json& body) {
  Result<CohereEmbedRequest> request = parse_cohere_embed(body, OpenAiDefaults());
  EXPECT_TRUE(request.ok()) << request.status().message();
  return request.value();
}

std::string fault(const json& body) {
  return parse_cohere_embed(body, OpenAiDefaults()).status().message();
}

TEST(CohereEmbed, TextsBecomeRequests) {
  const CohereEmbedRequest request =
      parsed_embed({{"texts", {"a", "b"}}, {"input_type", "search_query"}});
  EXPECT_EQ(request.texts, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(request.embeddings.requests.size(), 2u);
  EXPECT_EQ(request.embeddings.requests[1].prompt, "b");
  EXPECT_EQ(request.types, std::vector<std::string>{"float"});
  EXPECT_EQ(request.max_tokens, 0);
  EXPECT_TRUE(request.embeddings.warnings.empty());
}

TEST(CohereEmbed, InputsAreTextsToo) {
  const json part = {{"type", "text"}, {"text", "a"}};
  const json inputs = json::array({json{{"content", json::array({part})}}});
  EXPECT_EQ(parsed_embed({{"inputs", inputs}}).texts, (std::vector<std::string>{"a"}));
}

TEST(CohereEmbed, WhatTextsAreForIsAPromptOfTheModel) {
  OpenAiDefaults defaults;
  const json body = {{"texts", {"a"}}, {"input_type", "search_query"}};
  const auto plain = parse_cohere_embed(body, defaults);
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_EQ(plain.value().embeddings.requests[0].prompt, "a");
  EXPECT_TRUE(plain.value().embeddings.warnings.empty());
  defaults.embedding_prompts = {{"query", "Q: "}};
  const auto prompted = parse_cohere_embed(body, defaults);
  ASSERT_TRUE(prompted.ok()) << prompted.status().message();
  EXPECT_EQ(prompted.value().embeddings.requests[0].prompt, "Q: a");
  EXPECT_EQ(prompted.value().texts, (std::vector<std::string>{"a"}));
}

TEST(CohereEmbed, TruncationHasASide) {
  EXPECT_FALSE(parsed_embed({{"texts", {"a"}}, {"truncate", "NONE"}}).max_tokens.has_value());
  const CohereEmbedRequest start = parsed_embed({{"texts", {"a"}}, {"truncate", "START"}});
  EXPECT_FALSE(start.max_tokens.has_value());
  EXPECT_EQ(start.embeddings.requests[0].truncate_prompt_tokens, -1);
  EXPECT_EQ(parsed_embed({{"texts", {"a"}}, {"max_tokens", 3}}).max_tokens, 3);
  EXPECT_EQ(fault({{"texts", {"a"}}, {"truncate", "LEFT"}}),
            "'truncate' must be \"NONE\", \"START\" or \"END\", not \"LEFT\"");
}

TEST(CohereEmbed, OtherTypesAreErrors) {
  EXPECT_EQ(
      fault({{"texts", {"a"}}, {"embedding_types", {"int8"}}}),
      "'embedding_types' may have \"float\", \"base64\", \"binary\" and \"ubinary\" here, not "
      "\"int8\"");
  EXPECT_EQ(fault({{"model", "m"}}), "'texts' is missing");
}

TEST(CohereEmbed, VectorsStandByType) {
  CohereEmbedRequest request;
  request.embeddings.requests.resize(1);
  request.texts = {"a"};
  request.types = {"float", "base64", "ubinary"};
  RequestOutput output;
  output.embedding = {1.0f, 0.0f};
  output.stats.num_prompt_tokens = 4;
  output.finished = output.request_finished = true;
  OutputSum sum;
  sum.add(output);
  CohereEmbedFormat format(request, {.id = "embed-1", .model = "m"});
  const json body = json::parse(format.whole({&sum}));
  EXPECT_EQ(body["embeddings"]["float"][0], json::array({1.0, 0.0}));
  EXPECT_EQ(body["embeddings"]["base64"][0], "AACAPwAAAAA=");
  EXPECT_EQ(body["embeddings"]["ubinary"][0], json({128}));
  EXPECT_EQ(body["texts"], json::array({"a"}));
  EXPECT_EQ(body["meta"]["billed_units"]["input_tokens"], 4);
}

}  // namespace
}  // namespace foretoken
