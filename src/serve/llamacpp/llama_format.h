#pragma once
#include <string>
#include <vector>

#include "serve/answer/answer_format.h"
#include "serve/llamacpp/llama_request.h"
#include "serve/openai/openai_response.h"

namespace foretoken {

// Answers of llama.cpp's /completion and /infill: {"content", "stop", "stop_type", "timings", ...},
// a list of these where there are several. In a stream, events with what is new and a last one for
// each that has everything else; no "[DONE]".
class LlamaFormat final : public AnswerFormat {
 public:
  // `prompts`: the text of each.
  LlamaFormat(LlamaRequest request, PromptTexts prompts, OpenAiLabel label);

  std::string whole(const std::vector<const OutputSum*>& sums) override;
  std::string error(const ServeError& error) override;
  std::string events(size_t request, const ChoiceOutput& news) override;
  std::string last_events() override { return {}; }
  std::string error_events(const ServeError& error) override;

 private:
  // What a stream has told of a choice.
  struct Told {
    OutputTimes times;
    bool new_line = false;
  };
  struct End {
    std::string content;
    std::vector<int32_t> tokens;
    bool has_new_line = false;
    OutputTimes times;
  };

  int index_of(size_t request, const RequestOutput& output) const;
  nlohmann::ordered_json final_json(size_t request, const RequestOutput& choice,
                                    const End& end) const;

  const LlamaRequest request_;
  const PromptTexts prompts_;
  const OpenAiLabel label_;
  std::vector<int> first_index_;  // of each engine request's choices
  std::vector<Told> told_;
};

}  // namespace foretoken
