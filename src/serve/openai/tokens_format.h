#pragma once
#include <string>
#include <vector>

#include "serve/answer/answer_format.h"
#include "serve/answer/usage.h"
#include "serve/openai/openai_request.h"

namespace foretoken {

// vLLM's body of /inference/v1/generate, {"token_ids", "sampling_params", "model", "stream", ...},
// as one of a completion of these ids, as long as it may become where nothing is said.
Result<nlohmann::ordered_json> completion_of_tokens(const nlohmann::ordered_json& body);

// Its answers: {"request_id", "choices": [{"index", "logprobs", "finish_reason", "token_ids"}]}.
// Log-probabilities have the shape of chats and name tokens by their ids.
class TokensFormat final : public AnswerFormat {
 public:
  // `request`: a completion of one prompt; `id`: of the answer.
  TokensFormat(OpenAiRequest request, std::string id);

  std::string whole(const std::vector<const OutputSum*>& sums) override;
  std::string error(const ServeError& error) override;
  std::string events(size_t request, const ChoiceOutput& news) override;
  std::string last_events() override;
  std::string error_events(const ServeError& error) override;

 private:
  nlohmann::ordered_json choice(const RequestOutput& output) const;

  const OpenAiRequest request_;
  const std::string id_;
  UsageSum usage_;
};

}  // namespace foretoken
