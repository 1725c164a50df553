#include "serve/anthropic/messages_format.h"

#include "base/files/json_object.h"
#include "serve/answer/sse.h"
#include "serve/fields/request_body.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/openai_choice.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;
using Kind = ChatPiece::Kind;

json parsed_input(const std::string& arguments) {
  json input = parsed_ordered_json(arguments);
  return input.is_object() ? input : json::object();
}

// `filled`: with its text, otherwise as a stream opens it.
json block_json(const ContentBlock& block, bool filled) {
  const std::string text = filled ? block.text : "";
  if (block.kind == Kind::kReasoning) {
    return {{"type", "thinking"}, {"thinking", text}, {"signature", ""}};
  }
  if (block.kind == Kind::kContent) return {{"type", "text"}, {"text", text}};
  return {{"type", "tool_use"},
          {"id", block.call_id},
          {"name", block.call_name},
          {"input", filled ? parsed_input(text) : json::object()}};
}

json delta_json(Kind kind, const std::string& text) {
  if (kind == Kind::kReasoning) return {{"type", "thinking_delta"}, {"thinking", text}};
  if (kind == Kind::kContent) return {{"type", "text_delta"}, {"text", text}};
  return {{"type", "input_json_delta"}, {"partial_json", text}};
}

}  // namespace

MessagesFormat::MessagesFormat(OpenAiRequest request, std::string id, std::string model,
                               KeepMessage keep)
    : request_(std::move(request)),
      id_(std::move(id)),
      model_(std::move(model)),
      keep_(std::move(keep)),
      parser_(make_choice_parser(request_)),
      blocks_(request_.include_reasoning) {}

json MessagesFormat::usage_of(const RequestStats& stats) const {
  json usage = {{"input_tokens", stats.num_prompt_tokens - stats.num_cached_tokens},
                {"cache_creation_input_tokens", 0},
                {"cache_read_input_tokens", stats.num_cached_tokens},
                {"output_tokens", stats.num_output_tokens}};
  if (splits_reasoning(request_)) {
    usage["output_tokens_details"] = {
        {"thinking_tokens", reasoning_.tokens_of(stats.num_output_tokens)}};
  }
  return usage;
}

json MessagesFormat::content() const {
  json all = json::array();
  for (const ContentBlock& block : blocks_.all()) all.push_back(block_json(block, true));
  return all;
}

std::vector<BlockStep> MessagesFormat::add(const std::vector<ChatPiece>& pieces) {
  reasoning_.add(pieces);
  return blocks_.add(pieces);
}

json MessagesFormat::message(const RequestStats& stats) const {
  return {{"id", id_},
          {"type", "message"},
          {"role", "assistant"},
          {"model", model_},
          {"content", json::array()},
          {"stop_reason", nullptr},
          {"stop_sequence", nullptr},
          {"usage", usage_of(stats)}};
}

json MessagesFormat::end_of(const RequestOutput& output) const {
  const json stopped_by = stop_reason(output, request_.requests.front().sampling);
  if (output.finish_reason == FinishReason::kLength) {
    const int most = request_.requests.front().sampling.max_tokens;
    const bool fits_more = output.stats.num_output_tokens >= most;
    return {{"stop_reason", fits_more ? "max_tokens" : "model_context_window_exceeded"},
            {"stop_sequence", nullptr}};
  }
  if (stopped_by.is_string()) {
    return {{"stop_reason", "stop_sequence"}, {"stop_sequence", stopped_by}};
  }
  const bool calls = parser_->num_tool_calls() > 0;
  return {{"stop_reason", calls ? "tool_use" : "end_turn"}, {"stop_sequence", nullptr}};
}

std::string MessagesFormat::whole(const std::vector<const OutputSum*>& sums) {
  const RequestOutput& output = sums.front()->choices().front();
  add(parser_->push(output.text));
  add(parser_->finish());
  json answer = message(output.stats);
  answer["content"] = content();
  if (keep_) keep_(answer["content"]);
  answer.update(end_of(output));
  put_warnings(request_.warnings, &answer);
  return json_text(answer);
}

std::string MessagesFormat::error(const ServeError& error) {
  return json_text(anthropic_error(error));
}

std::string MessagesFormat::step_event(const BlockStep& step) const {
  const ContentBlock& block = blocks_.all()[step.block];
  switch (step.kind) {
    case BlockStep::Kind::kOpen:
      return sse_event("content_block_start", {{"type", "content_block_start"},
                                               {"index", step.block},
                                               {"content_block", block_json(block, false)}});
    case BlockStep::Kind::kText:
      return sse_event("content_block_delta", {{"type", "content_block_delta"},
                                               {"index", step.block},
                                               {"delta", delta_json(block.kind, step.text)}});
    case BlockStep::Kind::kClose:
      break;
  }
  std::string signature;
  if (block.kind == Kind::kReasoning) {
    signature = sse_event("content_block_delta",
                          {{"type", "content_block_delta"},
                           {"index", step.block},
                           {"delta", {{"type", "signature_delta"}, {"signature", ""}}}});
  }
  return signature +
         sse_event("content_block_stop", {{"type", "content_block_stop"}, {"index", step.block}});
}

std::string MessagesFormat::events(size_t, const ChoiceOutput& news) {
  std::string events;
  if (!begun_) {
    RequestStats stats = news.output.stats;
    stats.num_output_tokens = 0;
    events = sse_event("message_start", {{"type", "message_start"}, {"message", message(stats)}});
    begun_ = true;
  }
  const auto tell = [&](const std::vector<BlockStep>& steps) {
    for (const BlockStep& step : steps) events += step_event(step);
  };
  tell(add(parser_->push(news.output.text)));
  if (news.output.finished) {
    tell(add(parser_->finish()));
    tell(blocks_.finish());
  }
  last_.finish_reason = news.output.finish_reason;
  last_.stop_reason = news.output.stop_reason;
  last_.stats = news.output.stats;
  return events;
}

std::string MessagesFormat::last_events() {
  if (keep_) keep_(content());
  json stop = {{"type", "message_stop"}};
  put_warnings(request_.warnings, &stop);
  return sse_event("message_delta", {{"type", "message_delta"},
                                     {"delta", end_of(last_)},
                                     {"usage", usage_of(last_.stats)}}) +
         sse_event("message_stop", stop);
}

std::string MessagesFormat::error_events(const ServeError& error) {
  return sse_event("error", anthropic_error(error));
}

}  // namespace foretoken
