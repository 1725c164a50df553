#pragma once
#include <string>
#include <vector>

#include "serve/answer/answer_format.h"
#include "serve/answer/usage.h"
#include "serve/openai/openai_request.h"
#include "serve/openai/openai_response.h"

namespace foretoken {

// Answers of Mistral's /v1/fim/completions: what a completion found, in the form of a chat. The
// last chunk of a stream has the usage.
class FimFormat final : public AnswerFormat {
 public:
  // `request`: a completion of one prompt.
  FimFormat(OpenAiRequest request, OpenAiLabel label);

  std::string whole(const std::vector<const OutputSum*>& sums) override;
  std::string error(const ServeError& error) override;
  std::string events(size_t request, const ChoiceOutput& news) override;
  std::string last_events() override;
  std::string error_events(const ServeError& error) override;

 private:
  const OpenAiRequest request_;
  const OpenAiLabel label_;
  std::vector<bool> begun_;  // by choice
  size_t num_open_ = 0;      // choices that have not finished
  UsageSum usage_;
};

}  // namespace foretoken
