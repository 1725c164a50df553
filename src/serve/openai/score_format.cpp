#include "serve/openai/score_format.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/embedding_score.h"
#include "serve/answer/sse.h"
#include "serve/fields/request_body.h"
#include "serve/fields/request_warnings.h"

namespace foretoken {
namespace {

using nlohmann::ordered_json;

struct Scores {
  std::vector<double> values;  // of each pair
  int64_t num_tokens = 0;      // of both texts of all pairs, as vLLM counts
};

const RequestOutput& only_choice(const OutputSum& sum) { return sum.choices().front(); }

// Of pairs that the model judged: between 0 and 1 unless its own numbers are wanted.
Scores judgements(const std::vector<const OutputSum*>& sums, bool raw) {
  Scores scores;
  for (const OutputSum* sum : sums) {
    const RequestOutput& pair = only_choice(*sum);
    double label = pair.embedding.empty() ? 0 : double{pair.embedding.front()};
    // Of yes and no: the part of yes in both.
    if (pair.embedding.size() == 2) label -= double{pair.embedding[1]};
    scores.values.push_back(raw ? label : 1 / (1 + std::exp(-label)));
    scores.num_tokens += pair.stats.num_prompt_tokens;
  }
  return scores;
}

double nearness(const ScoreRequest& request, const std::vector<float>& query,
                const std::vector<float>& answer) {
  const auto size = static_cast<size_t>(request.token_size);
  if (size > 0) return token_score(query, answer, size);
  // A cosine, also where rounding would have it otherwise.
  return std::clamp(embedding_score(query, answer), -1.0, 1.0);
}

Scores score(const ScoreRequest& request, const std::vector<const OutputSum*>& sums) {
  if (request.judged) return judgements(sums, request.raw_scores);
  Scores scores;
  const size_t num_first = request.first.size();
  for (size_t i = 0; i < request.second.size(); ++i) {
    const RequestOutput& query = only_choice(*sums[num_first == 1 ? 0 : i]);
    const RequestOutput& answer = only_choice(*sums[num_first + i]);
    scores.values.push_back(nearness(request, query.embedding, answer.embedding));
    scores.num_tokens += query.stats.num_prompt_tokens + answer.stats.num_prompt_tokens;
  }
  return scores;
}

ordered_json tei_ranking(const ScoreRequest& request, const Scores& scores,
                         const std::vector<size_t>& order) {
  ordered_json ranking = ordered_json::array();
  for (const size_t i : order) {
    ordered_json result = {{"index", i}};
    if (request.return_documents) result["text"] = request.second[i];
    result["score"] = scores.values[i];
    ranking.push_back(std::move(result));
  }
  return ranking;
}

ordered_json nim_rankings(const Scores& scores, const std::vector<size_t>& order) {
  ordered_json rankings = ordered_json::array();
  for (const size_t i : order) rankings.push_back({{"index", i}, {"logit", scores.values[i]}});
  return rankings;
}

// Voyage's documents are texts.
ordered_json voyage_data(const ScoreRequest& request, const Scores& scores,
                         const std::vector<size_t>& order) {
  ordered_json data = ordered_json::array();
  for (const size_t i : order) {
    data.push_back({{"index", i}, {"relevance_score", scores.values[i]}});
    if (request.return_documents) data.back()["document"] = request.second[i];
  }
  return data;
}

ordered_json usage_of(int64_t num_tokens) {
  return {{"prompt_tokens", num_tokens}, {"total_tokens", num_tokens}};
}

// Of one label how likely it is, of several their parts of 1.
void share_labels(std::span<float> numbers) {
  if (numbers.size() == 1) {
    numbers[0] = static_cast<float>(1 / (1 + std::exp(-double{numbers[0]})));
    return;
  }
  const double most = *std::max_element(numbers.begin(), numbers.end());
  double sum = 0;
  for (const float number : numbers) sum += std::exp(number - most);
  for (float& number : numbers) number = static_cast<float>(std::exp(number - most) / sum);
}

ClassRule rule_of_model(const EngineInfo& info) {
  if (info.problem_type == "regression") return ClassRule::kNone;
  if (info.problem_type == "multi_label_classification") return ClassRule::kSigmoid;
  return info.num_labels < 2 ? ClassRule::kSigmoid : ClassRule::kSoftmax;
}

}  // namespace

std::vector<size_t> best_first(const std::vector<double>& scores, int top_n) {
  std::vector<size_t> order(scores.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&scores](size_t a, size_t b) { return scores[a] > scores[b]; });
  const auto wanted = static_cast<size_t>(top_n);
  if (wanted > 0 && wanted < order.size()) order.resize(wanted);
  return order;
}

std::string PooledFormat::error(const ServeError& error) { return json_text(error_body_(error)); }

std::string PooledFormat::error_events(const ServeError& error) {
  return sse_data(error_body_(error));
}

std::string ScoreFormat::whole(const std::vector<const OutputSum*>& sums) {
  const Scores scores = score(request_, sums);
  ordered_json body = start_openai_body("list", label());
  body["data"] = ordered_json::array();
  for (const double value : scores.values) {
    body["data"].push_back({{"index", body["data"].size()}, {"object", "score"}, {"score", value}});
  }
  body["usage"] = usage_of(scores.num_tokens);
  put_warnings(request_.embeddings.warnings, &body);
  return json_text(body);
}

std::string RerankFormat::whole(const std::vector<const OutputSum*>& sums) {
  const Scores scores = score(request_, sums);
  const std::vector<size_t> order = best_first(scores.values, request_.top_n);
  const RankingForm form = request_.form;
  if (form == RankingForm::kTei) return json_text(tei_ranking(request_, scores, order));
  if (form == RankingForm::kNim) {
    return json_text(
        {{"rankings", nim_rankings(scores, order)}, {"usage", usage_of(scores.num_tokens)}});
  }
  ordered_json body = {{"id", label().id},
                       {"object", "list"},
                       {"model", label().model},
                       {"usage", usage_of(scores.num_tokens)},
                       {"results", ordered_json::array()}};
  if (form == RankingForm::kVoyage) body["data"] = voyage_data(request_, scores, order);
  for (const size_t i : order) {
    ordered_json result = {{"index", i}};
    if (request_.return_documents) result["document"] = {{"text", request_.second[i]}};
    result["relevance_score"] = scores.values[i];
    body["results"].push_back(std::move(result));
  }
  put_warnings(request_.embeddings.warnings, &body);
  return json_text(body);
}

// Of a text, or one for each of its tokens.
ordered_json PoolingFormat::data_of(const std::vector<float>& numbers) const {
  if (tokens_.size == 0) return embedding_value(request_, numbers);
  ordered_json rows = ordered_json::array();
  for (auto at = numbers.begin(); numbers.end() - at >= tokens_.size; at += tokens_.size) {
    std::vector<float> row(at, at + tokens_.size);
    if (tokens_.are_labels) share_labels(row);
    rows.push_back(embedding_value(request_, std::move(row)));
  }
  return rows;
}

std::string PoolingFormat::whole(const std::vector<const OutputSum*>& sums) {
  ordered_json body = start_openai_body("list", label());
  body["data"] = ordered_json::array();
  int64_t num_tokens = 0;
  for (const OutputSum* sum : sums) {
    const RequestOutput& choice = only_choice(*sum);
    num_tokens += choice.stats.num_prompt_tokens;
    body["data"].push_back({{"index", body["data"].size()},
                            {"object", "pooling"},
                            {"data", data_of(choice.embedding)}});
  }
  body["usage"] = usage_of(num_tokens);
  put_warnings(request_.warnings, &body);
  return json_text(body);
}

std::vector<double> class_scores(const EngineInfo& info, const std::vector<float>& numbers,
                                 ClassRule rule) {
  std::vector<double> scores(numbers.begin(), numbers.end());
  if (rule == ClassRule::kOfModel) rule = rule_of_model(info);
  if (rule == ClassRule::kNone || scores.empty()) return scores;
  if (rule == ClassRule::kSigmoid) {
    for (double& score : scores) score = 1 / (1 + std::exp(-score));
    return scores;
  }
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - most);
  for (double& score : scores) score /= sum;
  return scores;
}

std::string ClassifyFormat::whole(const std::vector<const OutputSum*>& sums) {
  nlohmann::ordered_json body = start_openai_body("list", label());
  body["data"] = nlohmann::ordered_json::array();
  int64_t num_tokens = 0;
  for (const OutputSum* sum : sums) {
    const RequestOutput& output = sum->choices().front();
    num_tokens += output.stats.num_prompt_tokens;
    const std::vector<double> scores = class_scores(info_, output.embedding, rule_);
    const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    const auto number = static_cast<size_t>(best);
    body["data"].push_back(
        {{"index", body["data"].size()},
         {"label", number < info_.labels.size() ? nlohmann::ordered_json(info_.labels[number])
                                                : nlohmann::ordered_json()},
         {"probs", scores},
         {"num_classes", scores.size()}});
  }
  body["usage"] = {
      {"prompt_tokens", num_tokens}, {"total_tokens", num_tokens}, {"completion_tokens", 0}};
  put_warnings(request_.warnings, &body);
  return json_text(body);
}

}  // namespace foretoken
