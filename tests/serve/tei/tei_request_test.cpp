#include "serve/tei/tei_request.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

TEST(TeiRequest, TextsAreCutAtTheirEndUnlessTheBodySaysNo) {
  const auto request = parse_tei_embed({{"inputs", {"a", "b"}}, {"normalize", false}}, {});
  ASSERT_TRUE(request.ok()) << request.status().message();
  ASSERT_EQ(request.value().requests.size(), 2u);
  const Request& first = request.value().requests.front();
  EXPECT_EQ(first.prompt, "a");
  EXPECT_FALSE(first.normalize);
  EXPECT_EQ(first.truncate_prompt_tokens, -1);
  EXPECT_EQ(first.truncation_side, TruncationSide::kRight);
  const auto whole = parse_tei_embed({{"inputs", "a"}, {"truncate", false}}, {});
  EXPECT_EQ(whole.value().requests.front().truncate_prompt_tokens, std::nullopt);
  const auto left = parse_tei_embed({{"inputs", "a"}, {"truncation_direction", "Left"}}, {});
  EXPECT_EQ(left.value().requests.front().truncation_side, TruncationSide::kLeft);
  EXPECT_FALSE(parse_tei_embed({{"inputs", "a"}, {"truncation_direction", "up"}}, {}).ok());
  EXPECT_FALSE(parse_tei_embed(json::object(), {}).ok());
}

TEST(TeiRequest, SimilarityComparesOneWithOthers) {
  const json inputs = {{"source_sentence", "a"}, {"sentences", {"b", "c"}}};
  const auto request =
      parse_tei_similarity({{"inputs", inputs}, {"parameters", json::object()}}, {});
  ASSERT_TRUE(request.ok()) << request.status().message();
  ASSERT_EQ(request.value().requests.size(), 3u);
  EXPECT_EQ(request.value().requests[2].prompt, "c");
  const json empty = {{"source_sentence", "a"}, {"sentences", json::array()}};
  EXPECT_FALSE(parse_tei_similarity({{"inputs", empty}}, {}).ok());
  EXPECT_FALSE(parse_tei_similarity({{"inputs", "a"}}, {}).ok());
}

TEST(TeiRequest, PredictionsAreOfTextsAndOfPairs) {
  const auto pairs_of = [](const json& inputs) {
    const auto predict = parse_tei_predict({{"inputs", inputs}}, {});
    EXPECT_TRUE(predict.ok()) << predict.status().message();
    return std::pair(predict.value().are_pairs, predict.value().is_single);
  };
  using Pairs = std::vector<bool>;
  EXPECT_EQ(pairs_of("a"), std::pair(Pairs{false}, true));
  EXPECT_EQ(pairs_of({"a", "b"}), std::pair(Pairs{true}, true));
  const json batch = json::array({json::array({"a"}), json::array({"b", "c"})});
  EXPECT_EQ(pairs_of(batch), std::pair(Pairs({false, true}), false));
  EXPECT_FALSE(parse_tei_predict({{"inputs", {"a", "b", "c"}}}, {}).ok());
  EXPECT_FALSE(parse_tei_predict({{"inputs", json::array()}}, {}).ok());
}

TEST(TeiRequest, ParametersOfTheInferenceApiSayTheRule) {
  const json parameters = {{"function_to_apply", "sigmoid"}, {"top_k", 2}};
  const auto predict = parse_tei_predict({{"inputs", "a"}, {"parameters", parameters}}, {});
  ASSERT_TRUE(predict.ok()) << predict.status().message();
  EXPECT_EQ(predict.value().rule, ClassRule::kSigmoid);
  EXPECT_EQ(predict.value().top_k, 2);
  EXPECT_TRUE(predict.value().is_api);
  EXPECT_EQ(parse_tei_predict({{"inputs", "a"}, {"raw_scores", true}}, {}).value().rule,
            ClassRule::kNone);
  EXPECT_FALSE(parse_tei_predict({{"inputs", "a"}, {"function_to_apply", "tanh"}}, {}).ok());
}

TEST(TeiRequest, ModelsThatWriteTakeComparisonsAndLists) {
  EXPECT_TRUE(is_tei_body({{"inputs", "a"}}, false));
  EXPECT_FALSE(is_tei_body({{"inputs", "a"}}, true));
  EXPECT_TRUE(is_tei_body({{"inputs", {{"source_sentence", "a"}}}}, true));
  EXPECT_TRUE(is_tei_body({{"inputs", {"a", "b"}}}, true));
  EXPECT_TRUE(is_tei_body({{"query", "a"}, {"texts", {"b"}}}, true));
}

}  // namespace
}  // namespace foretoken
