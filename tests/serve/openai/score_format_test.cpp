#include "serve/openai/score_format.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

OutputSum pooled(std::vector<float> embedding, int64_t num_tokens) {
  RequestOutput output;
  output.embedding = std::move(embedding);
  output.stats.num_prompt_tokens = num_tokens;
  output.finished = output.request_finished = true;
  OutputSum sum;
  sum.add(output);
  return sum;
}

const OutputSum kQuery = pooled({1, 0}, 3);
const OutputSum kFar = pooled({0, 1}, 5);
const OutputSum kNear = pooled({0.8f, 0.6f}, 7);

ScoreRequest ranking(int top_n, bool with_documents) {
  ScoreRequest request;
  request.first = {"q"};
  request.second = {"far", "near"};
  request.top_n = top_n;
  request.return_documents = with_documents;
  return request;
}

TEST(ScoreFormat, AScoreForEachPair) {
  ScoreFormat format(ranking(0, true), {.id = "score-1", .model = "m"});
  const json body = json::parse(format.whole({&kQuery, &kFar, &kNear}));
  EXPECT_EQ(body["id"], "score-1");
  EXPECT_EQ(body["object"], "list");
  EXPECT_EQ(body["data"][0], (json{{"index", 0}, {"object", "score"}, {"score", 0.0}}));
  EXPECT_NEAR(body["data"][1]["score"].get<double>(), 0.8, 1e-6);
  EXPECT_EQ(body["usage"]["total_tokens"], 3 + 5 + 3 + 7);
}

TEST(ScoreFormat, TheBestComesFirst) {
  RerankFormat format(ranking(0, true), {.id = "rerank-1", .model = "m"});
  const json body = json::parse(format.whole({&kQuery, &kFar, &kNear}));
  ASSERT_EQ(body["results"].size(), 2u);
  EXPECT_EQ(body["results"][0]["index"], 1);
  EXPECT_EQ(body["results"][0]["document"]["text"], "near");
  EXPECT_EQ(body["results"][1]["relevance_score"], 0.0);
  RerankFormat one(ranking(1, false), {.id = "rerank-1", .model = "m"});
  const json best = json::parse(one.whole({&kQuery, &kFar, &kNear}));
  ASSERT_EQ(best["results"].size(), 1u);
  EXPECT_FALSE(best["results"][0].contains("document"));
}

TEST(ScoreFormat, PooledVectors) {
  OpenAiRequest request;
  request.requests.resize(1);
  request.dimensions = 1;
  PoolingFormat format(request, {}, {.id = "pool-1", .model = "m"});
  const json body = json::parse(format.whole({&kNear}));
  EXPECT_EQ(body["data"][0]["object"], "pooling");
  EXPECT_EQ(body["data"][0]["data"], (json{1.0}));
  EXPECT_EQ(body["usage"]["prompt_tokens"], 7);
  EXPECT_EQ(json::parse(format.error(invalid_argument("'x' is wrong")))["error"]["param"], "x");
}

TEST(ScoreFormat, TokensAreToldOneByOne) {
  OpenAiRequest request;
  request.requests.resize(1);
  const OutputSum two = pooled({0, 0, 5, 5}, 2);
  PoolingFormat vectors(request, {.size = 2}, {.id = "pool-1", .model = "m"});
  EXPECT_EQ(json::parse(vectors.whole({&two}))["data"][0]["data"], (json{{0.0, 0.0}, {5.0, 5.0}}));
  PoolingFormat labels(request, {.size = 2, .are_labels = true}, {.id = "pool-1", .model = "m"});
  EXPECT_EQ(json::parse(labels.whole({&two}))["data"][0]["data"], (json{{0.5, 0.5}, {0.5, 0.5}}));
}

TEST(ScoreFormat, TextsAreComparedTokenByToken) {
  ScoreRequest request = ranking(0, true);
  request.token_size = 1;
  ScoreFormat format(request, {.id = "score-1", .model = "m"});
  const json body = json::parse(format.whole({&kQuery, &kFar, &kNear}));
  EXPECT_EQ(body["data"][0]["score"], 1.0);
  EXPECT_NEAR(body["data"][1]["score"].get<double>(), 0.8, 1e-6);
}

EngineInfo info_of(std::vector<std::string> labels, const std::string& problem_type) {
  EngineInfo info;
  info.num_labels = static_cast<int>(labels.size());
  info.labels = std::move(labels);
  info.problem_type = problem_type;
  return info;
}

TEST(ClassScores, GoByWhatTheModelWasTrainedFor) {
  const std::vector<float> numbers = {0, 0};
  const auto scores = [&](const char* problem) {
    return class_scores(info_of({"a", "b"}, problem), numbers, ClassRule::kOfModel);
  };
  EXPECT_EQ(scores(""), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(scores("single_label_classification"), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(scores("regression"), (std::vector<double>{0, 0}));
  const EngineInfo several = info_of({"a", "b"}, "multi_label_classification");
  EXPECT_NEAR(class_scores(several, {0, 2}, ClassRule::kOfModel)[1], 0.8808, 1e-4);
  const EngineInfo one = info_of({"a"}, "");
  EXPECT_EQ(class_scores(one, {0}, ClassRule::kOfModel), (std::vector<double>{0.5}));
}

TEST(ClassScores, OrByWhatIsWished) {
  const EngineInfo info = info_of({"a", "b"}, "");
  EXPECT_EQ(class_scores(info, {3, -1}, ClassRule::kNone), (std::vector<double>{3, -1}));
  EXPECT_NEAR(class_scores(info, {1000, 0}, ClassRule::kSoftmax)[0], 1, 1e-12);
  EXPECT_EQ(class_scores(info, {0, 0}, ClassRule::kSigmoid), (std::vector<double>{0.5, 0.5}));
}

TEST(ClassifyFormat, NamesTheLikeliestClass) {
  const EngineInfo info = info_of({"sad", "glad"}, "");
  RequestOutput output;
  output.embedding = {-1, 1};
  output.stats.num_prompt_tokens = 3;
  output.finished = output.request_finished = true;
  OutputSum sum;
  sum.add(output);
  ClassifyFormat format(info, ClassRule::kOfModel, {}, {.id = "classify-1", .model = "m"});
  const json body = json::parse(format.whole({&sum}));
  EXPECT_EQ(body["object"], "list");
  EXPECT_EQ(body["data"][0]["label"], "glad");
  EXPECT_EQ(body["data"][0]["num_classes"], 2);
  EXPECT_NEAR(body["data"][0]["probs"][1].get<double>(), 0.8808, 1e-4);
  EXPECT_EQ(body["usage"]["total_tokens"], 3);
}

}  // namespace
}  // namespace foretoken
