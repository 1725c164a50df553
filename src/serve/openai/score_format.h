#pragma once
#include <string>
#include <vector>

#include "serve/answer/answer_format.h"
#include "serve/openai/openai_response.h"
#include "serve/openai/score_request.h"

namespace foretoken {

// Indices of the `top_n` highest scores, the highest first and equal ones in their order; 0: of
// all.
std::vector<size_t> best_first(const std::vector<double>& scores, int top_n);

// Whole answers made of embeddings, without streams.
class PooledFormat : public AnswerFormat {
 public:
  // The body of an error, in the protocol of the answers.
  using ErrorBody = nlohmann::ordered_json (*)(const ServeError& error);

  explicit PooledFormat(OpenAiLabel label, ErrorBody error_body = openai_error)
      : label_(std::move(label)), error_body_(error_body) {}

  std::string error(const ServeError& error) override;
  std::string events(size_t, const ChoiceOutput&) override { return {}; }
  std::string last_events() override { return {}; }
  std::string error_events(const ServeError& error) override;

 protected:
  const OpenAiLabel& label() const { return label_; }

 private:
  const OpenAiLabel label_;
  const ErrorBody error_body_;
};

// {"id", "object": "list", "created", "model", "data": [{"index", "object": "score", "score"}],
// "usage"} of /v1/score.
class ScoreFormat final : public PooledFormat {
 public:
  ScoreFormat(ScoreRequest request, OpenAiLabel label)
      : PooledFormat(std::move(label)), request_(std::move(request)) {}
  std::string whole(const std::vector<const OutputSum*>& sums) override;

 private:
  const ScoreRequest request_;
};

// {"id", "model", "usage", "results": [{"index", "document": {"text"}, "relevance_score"}]} of
// /v1/rerank, best first; or [{"index", "text", "score"}].
class RerankFormat final : public PooledFormat {
 public:
  RerankFormat(ScoreRequest request, OpenAiLabel label, ErrorBody error_body = openai_error)
      : PooledFormat(std::move(label), error_body), request_(std::move(request)) {}
  std::string whole(const std::vector<const OutputSum*>& sums) override;

 private:
  const ScoreRequest request_;
};

// What a text becomes that is told token by token.
struct TokenNumbers {
  int size = 0;             // of each token; 0: the text becomes one vector
  bool are_labels = false;  // which become parts of 1
};

// {"id", "object": "list", "created", "model", "data": [{"index", "object": "pooling", "data"}],
// "usage"} of /pooling; "data" of a text that is told token by token is a list for each.
class PoolingFormat final : public PooledFormat {
 public:
  PoolingFormat(OpenAiRequest request, TokenNumbers tokens, OpenAiLabel label)
      : PooledFormat(std::move(label)), request_(std::move(request)), tokens_(tokens) {}
  std::string whole(const std::vector<const OutputSum*>& sums) override;

 private:
  nlohmann::ordered_json data_of(const std::vector<float>& numbers) const;

  const OpenAiRequest request_;
  const TokenNumbers tokens_;
};

// What becomes of the numbers that a model gives a text's labels.
enum class ClassRule : uint8_t {
  kOfModel,  // as its problem_type says, or else parts of 1; of a single label between 0 and 1
  kNone,
  kSoftmax,
  kSigmoid
};

std::vector<double> class_scores(const EngineInfo& info, const std::vector<float>& numbers,
                                 ClassRule rule);

// {"id", "object": "list", "created", "model", "data": [{"index", "label", "probs",
// "num_classes"}], "usage"} of vLLM's /classify.
class ClassifyFormat final : public PooledFormat {
 public:
  // The engine's info outlives it.
  ClassifyFormat(const EngineInfo& info, ClassRule rule, OpenAiRequest request, OpenAiLabel label)
      : PooledFormat(std::move(label)), info_(info), rule_(rule), request_(std::move(request)) {}
  std::string whole(const std::vector<const OutputSum*>& sums) override;

 private:
  const EngineInfo& info_;
  const ClassRule rule_;
  const OpenAiRequest request_;
};

}  // namespace foretoken
