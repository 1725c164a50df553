#include "serve/openai/score_request.h"

#include <gtest/gtest.h>

#include "support/quiet_engine.h"

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

// A token for each letter, and special ones around the text.
class JudgingEngine : public test::QuietEngine {
 public:
  JudgingEngine() {
    info_.num_labels = 1;
    info_.pair_marks = 1;
    info_.max_model_len = 8;
  }
  void take_template(const char* text) {
    info_.num_labels = 2;
    info_.pair_template = text;
  }
  Status encode(const std::string& text, bool special, std::vector<int32_t>* ids) const override {
    num_read_ += text.size();
    ids->assign(text.begin(), text.end());
    if (!special) return {};
    ids->insert(ids->begin(), 1);
    ids->push_back(2);
    return {};
  }
  size_t num_read() const { return num_read_; }

 private:
  mutable size_t num_read_ = 0;
};

TEST(ScoreRequest, AQueryIsReadOnceForAllOfItsPairs) {
  const JudgingEngine engine;
  auto request = parse_rerank_request({{"query", "qqq"}, {"documents", {"a", "b", "c"}}}, {});
  ASSERT_TRUE(request.ok()) << request.status().message();
  ASSERT_TRUE(join_pairs(engine, &request.value()).ok());
  EXPECT_EQ(engine.num_read(), 6u);
  ASSERT_EQ(request.value().embeddings.requests.size(), 3u);
  EXPECT_EQ(request.value().embeddings.requests[1].prompt_token_ids,
            (std::vector<int32_t>{1, 'q', 'q', 'q', 2, 'b', 2}));
}

// As rerankers of Qwen 3 in GGUF files have it.
TEST(ScoreRequest, PairsMayBeOneText) {
  JudgingEngine engine;
  engine.take_template("<q>{query}<d>{document}</d>");
  const std::string query(100'000, 'q');
  auto request = parse_rerank_request({{"query", query}, {"documents", {"a", "b"}}}, {});
  ASSERT_TRUE(request.ok()) << request.status().message();
  ASSERT_FALSE(join_pairs(engine, &request.value()).ok()) << "the query alone is too long";
  request = parse_rerank_request({{"query", "{d}"}, {"documents", {"a", "{query}"}}}, {});
  ASSERT_TRUE(join_pairs(engine, &request.value()).ok());
  const auto& pairs = request.value().embeddings.requests;
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].prompt, "<q>{d}<d>a</d>");
  EXPECT_EQ(pairs[1].prompt, "<q>{d}<d>{query}</d>");
  EXPECT_FALSE(pairs[0].add_special_tokens);
}

// Each pair would have a copy of it, also where pairs are cut.
TEST(ScoreRequest, AHugeQueryIsNotPutIntoManyTexts) {
  JudgingEngine engine;
  engine.take_template("{query}{document}");
  const std::vector<std::string> documents(4000, "a");
  auto request = parse_rerank_request(
      {{"query", std::string(70'000, 'q')}, {"texts", documents}, {"truncate", true}}, {});
  ASSERT_TRUE(request.ok()) << request.status().message();
  const Status status = join_pairs(engine, &request.value());
  EXPECT_NE(status.message().find("too many beside"), std::string::npos) << status.message();
}

TEST(ScoreRequest, PairsMuchTooLongAreRefusedOrCutBeforeThereAreMany) {
  const JudgingEngine engine;
  const std::string query(100'000, 'q');
  auto whole = parse_rerank_request({{"query", query}, {"documents", {"a", "b"}}}, {});
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  const Status status = join_pairs(engine, &whole.value());
  EXPECT_NE(status.message().find("prompt is too long"), std::string::npos) << status.message();
  EXPECT_LT(engine.num_read(), 10'000u);
  auto cut = parse_rerank_request(
      {{"query", query}, {"documents", {"a", "b"}}, {"truncate_prompt_tokens", 4}}, {});
  ASSERT_TRUE(cut.ok()) << cut.status().message();
  ASSERT_TRUE(join_pairs(engine, &cut.value()).ok());
  for (const Request& pair : cut.value().embeddings.requests) {
    EXPECT_LE(pair.prompt_token_ids.size(), 11u);
    EXPECT_EQ(pair.prompt_token_ids.back(), 2);
  }
}

}  // namespace
}  // namespace foretoken
