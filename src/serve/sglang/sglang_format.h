#pragma once
#include <string>
#include <vector>

#include "serve/answer/answer_format.h"
#include "serve/openai/openai_response.h"
#include "serve/sglang/sglang_request.h"

namespace foretoken {

// Answers of SGLang's /generate: {"text", "output_ids", "meta_info"}, a list of these where there
// are several. Each event of a stream has everything that came so far of a choice, with its "index"
// where there are several; "[DONE]" ends it.
class SglangFormat final : public AnswerFormat {
 public:
  SglangFormat(SglangRequest request, OpenAiLabel label);

  std::string whole(const std::vector<const OutputSum*>& sums) override;
  std::string error(const ServeError& error) override;
  std::string events(size_t request, const ChoiceOutput& news) override;
  std::string last_events() override;
  std::string error_events(const ServeError& error) override;

 private:
  int index_of(size_t request, const RequestOutput& output) const;
  bool has_several() const { return request_.is_list || told_.size() > 1; }
  nlohmann::ordered_json choice_json(size_t request, const RequestOutput& choice) const;
  nlohmann::ordered_json meta_info(size_t request, const RequestOutput& choice) const;
  void add_logprobs(size_t request, const RequestOutput& choice,
                    nlohmann::ordered_json* meta) const;

  const SglangRequest request_;
  const OpenAiLabel label_;
  std::vector<int> first_index_;                             // of each engine request's choices
  std::vector<RequestOutput> told_;                          // of each choice of a stream
  std::vector<std::vector<TokenLogprobs>> prompt_logprobs_;  // of each engine request
};

}  // namespace foretoken
