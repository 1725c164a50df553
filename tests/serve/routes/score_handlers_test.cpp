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

}  // namespace
}  // namespace foretoken
