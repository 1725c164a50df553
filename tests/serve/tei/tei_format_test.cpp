#include "serve/tei/tei_format.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

OutputSum sum_of(std::vector<float> embedding) {
  RequestOutput output;
  output.embedding = std::move(embedding);
  output.finished = output.request_finished = true;
  OutputSum sum;
  sum.add(output);
  return sum;
}

TEST(TeiFormat, VectorsAreAListOfLists) {
  const OutputSum first = sum_of({1, 0}), second = sum_of({0, 0.5f});
  OpenAiRequest request;
  request.requests.resize(2);
  TeiEmbedFormat format(request, {});
  EXPECT_EQ(json::parse(format.whole({&first, &second})), json::parse("[[1.0,0.0],[0.0,0.5]]"));
}

TEST(TeiFormat, SimilaritiesAreCosinesOfAnyLengths) {
  const OutputSum source = sum_of({2, 0}), same = sum_of({3, 0}), other = sum_of({0, 5});
  TeiSimilarityFormat format(OpenAiLabel{});
  EXPECT_EQ(json::parse(format.whole({&source, &same, &other})), json::parse("[1.0,0.0]"));
}

TEST(TeiFormat, PredictionsBeginWithTheLikeliest) {
  EngineInfo info;
  info.num_labels = 2;
  info.labels = {"sad", "glad"};
  const OutputSum sum = sum_of({-1, 1});
  TeiPredict predict;
  predict.is_single = true;
  predict.rule = ClassRule::kNone;
  const json wanted = json::parse(R"([{"score":1.0,"label":"glad"},{"score":-1.0,"label":"sad"}])");
  EXPECT_EQ(wanted, json::parse(TeiPredictFormat(info, predict, {}).whole({&sum})));
  predict.is_api = true;
  predict.top_k = 1;
  const json first = json::array({json::array({wanted[0]})});
  EXPECT_EQ(first, json::parse(TeiPredictFormat(info, predict, {}).whole({&sum})));
}

TEST(TeiFormat, ErrorsHaveAType) {
  const json error = tei_error(ServeError(400, invalid_argument("no")));
  EXPECT_EQ(error["error"], "no");
  EXPECT_EQ(error["error_type"], "Validation");
  EXPECT_EQ(tei_error(ServeError(429, invalid_argument("no")))["error_type"], "Overloaded");
}

}  // namespace
}  // namespace foretoken
