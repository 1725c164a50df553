#pragma once
#include <memory>
#include <string>
#include <vector>

#include "serve/answer/answer_format.h"
#include "serve/answer/content_blocks.h"
#include "serve/openai/openai_response.h"
#include "serve/openai/score_format.h"

namespace foretoken {

// Which member of an answer has the text: 'message' of /api/chat, or 'response' of /api/generate.
enum class OllamaAnswer { kChat, kGenerate };

// Answers of Ollama's /api/chat and /api/generate: one JSON object, or a stream of them, a line
// each, of which the last has "done", why the text ended, counts, and times in nanoseconds. Calls
// of tools are told whole.
class OllamaFormat final : public AnswerFormat {
 public:
  OllamaFormat(OllamaAnswer kind, OpenAiRequest request, OpenAiLabel label);

  bool streams_lines() const override { return true; }
  std::string whole(const std::vector<const OutputSum*>& sums) override;
  std::string error(const ServeError& error) override;
  std::string events(size_t request, const ChoiceOutput& news) override;
  std::string last_events() override { return {}; }
  std::string error_events(const ServeError& error) override;

 private:
  // What is new about the text.
  struct News {
    std::string content;
    std::string thinking;
    nlohmann::ordered_json calls = nlohmann::ordered_json::array();

    bool empty() const { return content.empty() && thinking.empty() && calls.empty(); }
  };

  News add(const RequestOutput& output);
  void take(const std::vector<BlockStep>& steps, News* news) const;
  nlohmann::ordered_json start(const News& news, bool done) const;
  void add_logprobs(const RequestOutput& output, nlohmann::ordered_json* answer) const;
  void add_end(const RequestOutput& output, const OutputTimes& times,
               nlohmann::ordered_json* answer) const;

  const OllamaAnswer kind_;
  const OpenAiRequest request_;
  const OpenAiLabel label_;
  std::unique_ptr<ChatParser> parser_;  // null: the text is told as it is
  ContentBlocks blocks_;
  OutputTimes times_;  // of a stream
};

// {"model", "embeddings": [[...], ...], "prompt_eval_count", ...} of /api/embed, or
// {"embedding": [...]} of /api/embeddings.
class OllamaEmbedFormat final : public PooledFormat {
 public:
  // `single`: the older form.
  OllamaEmbedFormat(bool single, OpenAiRequest request, OpenAiLabel label)
      : PooledFormat(std::move(label)), single_(single), request_(std::move(request)) {}

  std::string whole(const std::vector<const OutputSum*>& sums) override;
  std::string error(const ServeError& error) override;

 private:
  const bool single_;
  const OpenAiRequest request_;
};

// What is answered where there is no prompt: the model is loaded, and stays so.
nlohmann::ordered_json ollama_load_answer(OllamaAnswer kind, const std::string& model,
                                          bool keeps_model);

// {"error": "..."}.
nlohmann::ordered_json ollama_error(const ServeError& error);

}  // namespace foretoken
