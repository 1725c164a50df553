#include "serve/openai/score_request.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr std::pair<const char*, const char*> kNames[] = {
    {"text_1", "text_2"}, {"data_1", "data_2"}, {"queries", "documents"}, {"queries", "items"}};

TEST(ScoreRequest, ReadsEveryNameOfThePairs) {
  for (const auto& [first, second] : kNames) {
    const auto request = parse_score_request({{first, "a"}, {second, {"b", "c"}}}, {});
    ASSERT_TRUE(request.ok()) << request.status().message();
    EXPECT_EQ(request.value().first, std::vector<std::string>{"a"});
    EXPECT_EQ(request.value().second, (std::vector<std::string>{"b", "c"}));
    EXPECT_EQ(request.value().embeddings.requests.size(), 3u);
  }
}

TEST(ScoreRequest, RefusesWhatCannotBePaired) {
  EXPECT_FALSE(parse_score_request({{"text_1", "a"}}, {}).ok());
  EXPECT_FALSE(parse_score_request({{"text_1", {"a", "b"}}, {"text_2", {"c"}}}, {}).ok());
  EXPECT_FALSE(parse_score_request({{"text_1", ""}, {"text_2", "b"}}, {}).ok());
  EXPECT_FALSE(parse_score_request({{"text_1", 3}, {"text_2", "b"}}, {}).ok());
}

TEST(ScoreRequest, ReadsRankings) {
  const json part = {{"type", "text"}, {"text", "c"}};
  json documents = {"a"};
  documents.push_back(json{{"text", "b"}});
  documents.push_back(json{{"content", json::array({part})}});
  const json body = {
      {"query", "q"}, {"documents", documents}, {"top_n", 2}, {"return_documents", false}};
  const auto request = parse_rerank_request(body, {});
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request.value().second, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(request.value().top_n, 2);
  EXPECT_FALSE(request.value().return_documents);
  EXPECT_FALSE(parse_rerank_request({{"query", "q"}, {"documents", json::array()}}, {}).ok());
  EXPECT_FALSE(parse_rerank_request({{"query", {"q", "r"}}, {"documents", "a"}}, {}).ok());
  EXPECT_FALSE(parse_rerank_request({{"query", "q"}, {"documents", "a"}, {"top_n", -1}}, {}).ok());
}

TEST(ScoreRequest, TakesWhatEmbeddingsTake) {
  const json body = {
      {"model", "m"}, {"text_1", "a"}, {"text_2", "b"}, {"truncate_prompt_tokens", 4}};
  OpenAiDefaults defaults;
  defaults.model_names = {"m"};
  const auto request = parse_score_request(body, defaults);
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request.value().embeddings.requests.back().truncate_prompt_tokens, 4);
  defaults.model_names = {"other"};
  EXPECT_EQ(parse_score_request(body, defaults).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace foretoken
