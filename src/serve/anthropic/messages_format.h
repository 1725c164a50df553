#pragma once
#include <memory>
#include <string>

#include "serve/answer/answer_format.h"
#include "serve/answer/content_blocks.h"
#include "serve/answer/reasoning_share.h"
#include "serve/anthropic/message_thread.h"
#include "serve/openai/openai_request.h"

namespace foretoken {

// Answers of Anthropic's /v1/messages. Usage counts cached prompt tokens apart, as Anthropic does.
class MessagesFormat : public AnswerFormat {
 public:
  // `keep`, unless empty, receives the message where it ends without a fault.
  MessagesFormat(OpenAiRequest request, std::string id, std::string model, KeepMessage keep = {});

  std::string whole(const std::vector<const OutputSum*>& sums) override;
  std::string error(const ServeError& error) override;
  std::string events(size_t request, const ChoiceOutput& news) override;
  std::string last_events() override;
  std::string error_events(const ServeError& error) override;

 private:
  nlohmann::ordered_json usage_of(const RequestStats& stats) const;
  nlohmann::ordered_json message(const RequestStats& stats) const;
  nlohmann::ordered_json content() const;
  std::vector<BlockStep> add(const std::vector<ChatPiece>& pieces);
  nlohmann::ordered_json end_of(const RequestOutput& output) const;
  std::string step_event(const BlockStep& step) const;

  const OpenAiRequest request_;
  const std::string id_;
  const std::string model_;
  const KeepMessage keep_;
  std::unique_ptr<ChatParser> parser_;
  ContentBlocks blocks_;
  ReasoningShare reasoning_;
  bool begun_ = false;
  RequestOutput last_;  // without text and tokens
};

}  // namespace foretoken
