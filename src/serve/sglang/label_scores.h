#pragma once
#include <string>
#include <vector>

#include "serve/openai/openai_request.h"
#include "serve/openai/score_format.h"

namespace foretoken {

// How likely each of some tokens comes behind a text: vLLM's /generative_scoring, and SGLang's
// /v1/score of models that write.
struct LabelScoring {
  OpenAiRequest texts;  // one of each item; then, without `among_labels`, another of each
  size_t num_items = 0;
  std::vector<int32_t> labels;  // token ids, as they were given
  bool among_labels = true;     // probabilities are those of the labels alone, which sum to 1
  bool as_lists = false;        // SGLang's answer
};

// Reads "query", "items", "label_token_ids", "apply_softmax", "item_first" and
// "add_special_tokens". `as_lists`: SGLang's body, whose "apply_softmax" is off unless told. Needs
// the model's tokenizer where texts are given.
Result<LabelScoring> parse_label_scoring(const nlohmann::ordered_json& body, const Engine& engine,
                                         const OpenAiDefaults& defaults, bool as_lists);

// vLLM's {"id", "object": "list", "created", "model", "data": [{"index", "object": "score",
// "score"}], "usage"}, of the first label; SGLang's {"scores": [[...]], "model", "usage", "object":
// "scoring"}, of all.
class LabelScoreFormat final : public PooledFormat {
 public:
  LabelScoreFormat(LabelScoring scoring, OpenAiLabel label)
      : PooledFormat(std::move(label)), scoring_(std::move(scoring)) {}
  std::string whole(const std::vector<const OutputSum*>& sums) override;

 private:
  std::vector<double> scores(const OutputSum& among, const OutputSum* plain) const;

  const LabelScoring scoring_;
};

}  // namespace foretoken
