#include "serve/sglang/label_scores.h"

#include <gtest/gtest.h>

#include <cmath>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

class LabelScores : public test::ServeRig {
 protected:
  // The likeliest tokens behind a text, with their log-probabilities.
  static std::vector<Logprob> likeliest(const std::string& text) {
    Request request;
    request.prompt = text;
    request.sampling.max_tokens = 1;
    request.sampling.temperature = 0;
    request.sampling.logprobs = 8;
    return engine().generate({request}).at(0).logprobs.at(0).top;
  }
};

TEST_F(LabelScores, AreTheModelsOwnProbabilities) {
  const std::vector<Logprob> top = likeliest("Once upon a");
  const json labels = {top[0].token_id, top[3].token_id, top[6].token_id};
  json body = {{"query", "Once upon"}, {"items", {" a"}}, {"label_token_ids", labels}};
  const json lists = post("/v1/score", body);
  EXPECT_EQ(lists["object"], "scoring");
  const json& scores = lists["scores"][0];
  ASSERT_EQ(scores.size(), 3u);
  EXPECT_NEAR(scores[0].get<double>(), std::exp(top[0].logprob), 1e-4);
  EXPECT_NEAR(scores[1].get<double>(), std::exp(top[3].logprob), 1e-4);
  EXPECT_NEAR(scores[2].get<double>(), std::exp(top[6].logprob), 1e-4);
  body["apply_softmax"] = false;
  const json first = post("/generative_scoring", body);
  EXPECT_NEAR(first["data"][0]["score"].get<double>(), scores[0].get<double>(), 1e-6);
  EXPECT_EQ(first["object"], "list");
}

TEST_F(LabelScores, AmongTheLabelsTheySumToOne) {
  const std::vector<Logprob> top = likeliest("Once upon a");
  const json body = {{"query", "Once upon"},
                     {"items", {" a", " the"}},
                     {"label_token_ids", {top[1].token_id, top[2].token_id}},
                     {"apply_softmax", true}};
  const json lists = post("/v1/score", body);
  for (const json& scores : lists["scores"]) {
    EXPECT_NEAR(scores[0].get<double>() + scores[1].get<double>(), 1, 1e-4);
  }
  const double odds = std::exp(top[1].logprob - top[2].logprob);
  EXPECT_NEAR(lists["scores"][0][0].get<double>(), odds / (1 + odds), 1e-4);
  const json first = post("/generative_scoring", body);
  ASSERT_EQ(first["data"].size(), 2u);
  EXPECT_EQ(first["data"][1]["index"], 1);
  EXPECT_GT(first["usage"]["prompt_tokens"], 0);
}

TEST_F(LabelScores, ItemsMayComeFirst) {
  const json body = {{"query", {7, 8}}, {"items", {{9}}}, {"label_token_ids", {5, 6}}};
  json turned = {
      {"query", {9}}, {"items", {{7, 8}}}, {"label_token_ids", {5, 6}}, {"item_first", true}};
  EXPECT_EQ(post("/generative_scoring", body)["data"], post("/generative_scoring", turned)["data"]);
}

TEST_F(LabelScores, Errors) {
  const json right = {{"query", "a"}, {"items", {"b"}}, {"label_token_ids", {5}}};
  for (const auto& [name, value] : {std::pair<const char*, json>{"query", nullptr},
                                    {"items", json::array()},
                                    {"label_token_ids", json::array()},
                                    {"label_token_ids", {1 << 30}},
                                    {"items", {true}}}) {
    json wrong = right;
    wrong[name] = value;
    post("/generative_scoring", wrong, 400);
  }
}

// Each item has a copy of the query.
TEST_F(LabelScores, ManyItemsBesideALongQueryAreRefused) {
  const json body = {{"query", std::string(70'000, 'a')},
                     {"items", std::vector<std::string>(4000, "b")},
                     {"label_token_ids", {5}}};
  const json refused = post("/generative_scoring", body, 400);
  EXPECT_NE(refused["error"]["message"].get<std::string>().find("too many beside"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
