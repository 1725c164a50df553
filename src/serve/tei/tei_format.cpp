#include "serve/tei/tei_format.h"

#include <algorithm>
#include <cmath>

#include "base/embedding_score.h"
#include "serve/fields/request_body.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

const std::vector<float>& embedding_of(const OutputSum* sum) {
  return sum->choices().front().embedding;
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  const double lengths = std::sqrt(embedding_score(a, a)) * std::sqrt(embedding_score(b, b));
  return lengths > 0 ? std::clamp(embedding_score(a, b) / lengths, -1.0, 1.0) : 0;
}

json predictions(const EngineInfo& info, const TeiPredict& predict, const OutputSum* sum) {
  const std::vector<double> scores = class_scores(info, embedding_of(sum), predict.rule);
  json list = json::array();
  for (const size_t i : best_first(scores, predict.top_k)) {
    const std::string label = i < info.labels.size() ? info.labels[i] : std::to_string(i);
    list.push_back({{"score", scores[i]}, {"label", label}});
  }
  return list;
}

}  // namespace

json tei_error(const ServeError& error) {
  const char* type = error.http == 429                        ? "Overloaded"
                     : error.http == 503                      ? "Unhealthy"
                     : error.http >= 400 && error.http <= 499 ? "Validation"
                                                              : "Backend";
  return {{"error", error.status.message()}, {"error_type", type}};
}

std::string TeiEmbedFormat::whole(const std::vector<const OutputSum*>& sums) {
  json vectors = json::array();
  for (const OutputSum* sum : sums) {
    vectors.push_back(embedding_value(request_, embedding_of(sum)));
  }
  return json_text(vectors);
}

std::string TeiSimilarityFormat::whole(const std::vector<const OutputSum*>& sums) {
  json cosines = json::array();
  for (size_t i = 1; i < sums.size(); ++i) {
    cosines.push_back(cosine(embedding_of(sums[0]), embedding_of(sums[i])));
  }
  return json_text(cosines);
}

std::string TeiPredictFormat::whole(const std::vector<const OutputSum*>& sums) {
  json lists = json::array();
  for (const OutputSum* sum : sums) lists.push_back(predictions(info_, predict_, sum));
  const bool is_one = predict_.is_single && !predict_.is_api && lists.size() == 1;
  return json_text(is_one ? lists.front() : lists);
}

}  // namespace foretoken
