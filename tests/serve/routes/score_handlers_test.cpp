#include "serve/routes/score_handlers.h"

#include <gtest/gtest.h>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

class ScoreHandlers : public test::ServeRig {};

TEST_F(ScoreHandlers, EqualTextsScoreOne) {
  const json body = post("/v1/score", {{"text_1", "a cat"}, {"text_2", {"a cat", "the park"}}});
  EXPECT_NEAR(body["data"][0]["score"].get<double>(), 1, 1e-5);
  EXPECT_LT(body["data"][1]["score"].get<double>(), 0.999);
  EXPECT_EQ(body["model"], "tiny");
}

TEST_F(ScoreHandlers, RankingsHaveSeveralPaths) {
  for (const char* path : {"/v1/rerank", "/rerank", "/v2/rerank"}) {
    const json body = post(path, {{"query", "a cat"}, {"documents", {"the park", "a cat"}}});
    EXPECT_EQ(body["results"][0]["index"], 1) << path;
  }
}

TEST_F(ScoreHandlers, PoolingHasOneTask) {
  const json body = post("/pooling", {{"input", "a cat"}, {"task", "embed"}});
  EXPECT_EQ(body["data"][0]["data"].size(), 256u);
  post("/pooling", {{"input", "a cat"}, {"task", "classify"}}, 501);
  post("/pooling", {{"input", "a cat"}, {"dimensions", 257}}, 400);
}

// In the forms of text-embeddings-inference (tei_routes).
TEST_F(ScoreHandlers, EmbedsAndCompares) {
  const json one = post("/embed", {{"inputs", "a cat"}});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].size(), 256u);
  const json two = post("/embed", {{"inputs", {"a cat", "the park"}}, {"dimensions", 4}});
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[1].size(), 4u);
  const json near =
      post("/similarity",
           {{"inputs", {{"source_sentence", "a cat"}, {"sentences", {"a cat", "the park"}}}}});
  EXPECT_NEAR(near[0].get<double>(), 1, 1e-5);
  EXPECT_LT(near[1].get<double>(), 0.999);
}

// huggingface_hub's InferenceClient and LangChain send all to the root.
TEST_F(ScoreHandlers, TheRootTakesTextsToEmbedAndToCompare) {
  EXPECT_EQ(post("/", {{"inputs", {"a cat", "the park"}}}).size(), 2u);
  const json inputs = {{"source_sentence", "a cat"}, {"sentences", {"the park"}}};
  EXPECT_EQ(post("/", {{"inputs", inputs}, {"parameters", json::object()}}).size(), 1u);
  EXPECT_EQ(post("/", {{"query", "a cat"}, {"texts", {"the park", "a cat"}}})[0]["index"], 1);
  EXPECT_EQ(post("/", {{"inputs", json::object()}}, 400)["error_type"], "Validation");
}

TEST_F(ScoreHandlers, TokensGoThereAndBack) {
  const json tokens = post("/tokenize", {{"inputs", "a cat"}, {"add_special_tokens", false}});
  json ids = json::array();
  for (const json& token : tokens[0]) ids.push_back(token["id"]);
  EXPECT_EQ(json::array({"a cat"}), post("/decode", {{"ids", ids}}));
}

TEST_F(ScoreHandlers, SaysWhatThereIsNot) {
  for (const char* path :
       {"/predict", "/classify", "/v1/classify", "/embed_sparse", "/embed_all"}) {
    post(path, {{"inputs", "a cat"}}, 404);
  }
  const json error = post("/embed", json::object(), 400);
  EXPECT_EQ(error["error_type"], "Validation");
}

}  // namespace
}  // namespace foretoken
