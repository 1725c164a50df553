#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "serve/answer/answer_format.h"
#include "serve/tgi/tgi_request.h"
#include "serve/tgi/token_texts.h"

namespace foretoken {

// {"error", "error_type"}, as text-generation-inference has it.
nlohmann::ordered_json tgi_error(const ServeError& error);

// Answers of text-generation-inference: {"generated_text", "details"}, or an event for each token,
// of which the last has both. What tokens say, one after the other, is the text.
class TgiFormat final : public AnswerFormat {
 public:
  // `as_list`: a whole answer is the only one of a list, as at "/".
  TgiFormat(TgiRequest request, bool as_list, IsSpecialToken is_special);

  std::string whole(const std::vector<const OutputSum*>& sums) override;
  std::string error(const ServeError& error) override;
  std::string events(size_t request, const ChoiceOutput& news) override;
  std::string last_events() override;
  std::string error_events(const ServeError& error) override;

 private:
  TokenTexts token_texts() const;
  nlohmann::ordered_json details_of(const RequestOutput& output) const;
  nlohmann::ordered_json top_of(const TokenLogprobs& position) const;
  std::string whole_text(const std::string& text) const;

  const TgiRequest request_;
  const bool as_list_;
  const IsSpecialToken is_special_;
  TokenTexts texts_;    // of a stream
  std::string told_;    // of a stream
  int num_events_ = 0;  // of tokens
};

}  // namespace foretoken
