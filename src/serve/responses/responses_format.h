#pragma once
#include <functional>
#include <memory>
#include <string>

#include "serve/answer/answer_format.h"
#include "serve/answer/content_blocks.h"
#include "serve/answer/reasoning_share.h"
#include "serve/flow/response_store.h"
#include "serve/responses/responses_request.h"

namespace foretoken {

// Receives the items of an answer that has ended.
using KeepOutput = std::function<void(const nlohmann::ordered_json& output)>;

// Answers of OpenAI's /v1/responses; events come in OpenAI's order. What has ended is kept in
// `store` if the request says so. `keep_output`, unless empty, is called with what was said in full
// or up to the length.
class ResponsesFormat : public AnswerFormat {
 public:
  ResponsesFormat(ResponsesRequest request, std::string id, std::string model, int64_t created,
                  ResponseStore& store, KeepOutput keep_output = {});

  // The response as it is before it ends, with this status.
  nlohmann::ordered_json unfinished(const char* status) const;

  std::string whole(const std::vector<const OutputSum*>& sums) override;
  std::string error(const ServeError& error) override;
  std::string events(size_t request, const ChoiceOutput& news) override;
  std::string last_events() override;
  std::string error_events(const ServeError& error) override;

 private:
  struct Item {
    std::string id;
    nlohmann::ordered_json logprobs = nlohmann::ordered_json::array();
  };

  std::string event(const char* name, nlohmann::ordered_json fields);
  std::string step_events(const BlockStep& step);
  std::string open_events(size_t block);
  std::string close_events(size_t block);
  nlohmann::ordered_json item_json(size_t block, const char* status, bool filled) const;
  nlohmann::ordered_json call_json(size_t block, const char* status, bool filled) const;
  // What the client calls the tool of a call; null: a function of its own.
  const OfferedTool* offered(const ContentBlock& call) const;
  bool is_text_call(const ContentBlock& block) const;
  nlohmann::ordered_json place_of(size_t block) const;
  nlohmann::ordered_json part_json(size_t block, bool filled) const;
  void add_blocks(const RequestOutput& output, std::string* events);
  void keep_last_logprobs();
  nlohmann::ordered_json finished(const RequestOutput& output) const;
  nlohmann::ordered_json usage_of(const RequestStats& stats) const;
  nlohmann::ordered_json failed(const ServeError& error) const;
  void keep(const nlohmann::ordered_json& response);

  const ResponsesRequest request_;
  const std::string id_;
  const std::string model_;
  const int64_t created_;
  ResponseStore& store_;
  const KeepOutput keep_output_;
  std::unique_ptr<ChatParser> parser_;
  ContentBlocks blocks_;
  ReasoningShare reasoning_;
  std::vector<Item> items_;                                                // by block
  nlohmann::ordered_json new_logprobs_ = nlohmann::ordered_json::array();  // of no text yet
  int64_t num_events_ = 0;
  const char* closing_status_ = "completed";  // of the items that end next
  RequestOutput last_;                        // without text and tokens
};

}  // namespace foretoken
