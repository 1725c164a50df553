#pragma once
#include <memory>
#include <string>
#include <vector>

#include "serve/answer/answer_format.h"
#include "serve/answer/reasoning_share.h"
#include "serve/answer/usage.h"
#include "serve/openai/openai_request.h"
#include "serve/openai/openai_response.h"

namespace foretoken {

// Answers of /v1/chat/completions, /v1/completions and /v1/embeddings. Chunks of a stream have
// every token that came since the one before; the first of a choice has the role, the last one the
// reason of its end. The last chunk of all has the warnings.
class OpenAiFormat : public AnswerFormat {
 public:
  // `prompts`: texts of the prompts, where they are echoed.
  OpenAiFormat(OpenAiRequest request, PromptTexts prompts, OpenAiLabel label);

  // From now on each piece of a call has a 'name', empty behind the first: Mistral's clients take
  // no piece without one, while others would take an empty one for the name of the call.
  void name_every_piece() { names_pieces_ = true; }

  std::string whole(const std::vector<const OutputSum*>& sums) override;
  std::string error(const ServeError& error) override;
  std::string events(size_t request, const ChoiceOutput& news) override;
  std::string last_events() override;
  std::string error_events(const ServeError& error) override;

 private:
  struct Choice {
    bool begun = false;
    std::unique_ptr<ChatParser> parser;  // of a chat
    ReasoningShare reasoning;
    int64_t num_tokens = 0;
    int64_t num_characters = 0;  // of tokens so far, for "text_offset"
  };

  // A prompt that is echoed: the log-probabilities of its tokens come with choice 0, for which the
  // others wait.
  struct EchoWait {
    bool over = false;
    std::vector<TokenLogprobs> prompt_tokens;
    std::vector<ChoiceOutput> others;  // what came of them meanwhile
  };

  std::string choice_events(size_t request, const ChoiceOutput& news);
  nlohmann::ordered_json chunk() const;
  // A chunk with nothing but what is new about one choice.
  nlohmann::ordered_json bare_chunk(int index, nlohmann::ordered_json delta) const;
  // The new parts of a message.
  nlohmann::ordered_json delta_json(const ChatDelta& delta) const;
  // `earlier`: receives the chunks that come before that of the returned choice.
  nlohmann::ordered_json chat_choice(Choice& choice, int index, const ChoiceOutput& news,
                                     std::string* earlier) const;
  nlohmann::ordered_json completion_choice(Choice& choice, size_t request,
                                           const ChoiceOutput& news) const;
  std::string role_chunk(size_t request, int index, const RequestOutput& first) const;
  // What the answer goes on with, where that is told.
  std::string echo_chunk(int index, const RequestOutput& first) const;
  void add_tokens(nlohmann::ordered_json& json, const ChoiceOutput& news) const;
  // `num_untold`: tokens that came, but stand in a later chunk.
  void add_usage(nlohmann::ordered_json& json, int64_t num_untold = 0) const;
  void add_timings(nlohmann::ordered_json& json, const ChoiceOutput& news);
  // A chunk without choices follows the others.
  bool has_sums() const { return request_.include_usage || label_.num_spec_tokens > 0; }

  const OpenAiRequest request_;
  const PromptTexts prompts_;
  const OpenAiLabel label_;
  std::vector<int> first_index_;  // of each engine request's choices
  std::vector<Choice> choices_;
  std::vector<EchoWait> waits_;  // of each engine request whose prompt is echoed
  bool names_pieces_ = false;
  size_t num_open_ = 0;  // choices that have not finished
  UsageSum usage_;
  OutputTimes times_;  // of a choice that is alone
  RequestStats last_stats_;
};

}  // namespace foretoken
