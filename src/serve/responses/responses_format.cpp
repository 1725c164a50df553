#include "serve/responses/responses_format.h"

#include <utility>

#include "serve/answer/sse.h"
#include "serve/fields/request_body.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/chat_body.h"
#include "serve/openai/openai_choice.h"
#include "serve/openai/openai_logprobs.h"
#include "serve/openai/openai_response.h"
#include "serve/responses/response_items.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;
using Kind = ChatPiece::Kind;

const char* id_prefix(Kind kind, bool is_text) {
  if (kind == Kind::kReasoning) return "rs";
  if (kind == Kind::kContent) return "msg";
  return is_text ? "ctc" : "fc";
}

// The text with log-probabilities, as far as they were wanted.
json logprobs_of(const RequestOutput& output, const SamplingParams& sampling) {
  if (!sampling.logprobs) return json::array();
  return chat_logprobs(output.logprobs)["content"];
}

}  // namespace

ResponsesFormat::ResponsesFormat(ResponsesRequest request, std::string id, std::string model,
                                 int64_t created, ResponseStore& store, KeepOutput keep_output)
    : request_(std::move(request)),
      id_(std::move(id)),
      model_(std::move(model)),
      created_(created),
      store_(store),
      keep_output_(std::move(keep_output)),
      parser_(make_choice_parser(request_.chat)),
      blocks_(request_.chat.include_reasoning) {}

json ResponsesFormat::unfinished(const char* status) const {
  json response = {{"id", id_},        {"object", "response"},    {"created_at", created_},
                   {"status", status}, {"error", nullptr},        {"incomplete_details", nullptr},
                   {"model", model_},  {"output", json::array()}, {"usage", nullptr}};
  response.update(request_.repeated);
  put_warnings(request_.chat.warnings, &response);
  return response;
}

json ResponsesFormat::usage_of(const RequestStats& stats) const {
  const int64_t num_reasoning = reasoning_.tokens_of(stats.num_output_tokens);
  return {{"input_tokens", stats.num_prompt_tokens},
          {"input_tokens_details",
           {{"cached_tokens", stats.num_cached_tokens}, {"cache_write_tokens", 0}}},
          {"output_tokens", stats.num_output_tokens},
          {"output_tokens_details", {{"reasoning_tokens", num_reasoning}}},
          {"total_tokens", stats.num_prompt_tokens + stats.num_output_tokens}};
}

json ResponsesFormat::part_json(size_t block, bool filled) const {
  const ContentBlock& from = blocks_.all()[block];
  const std::string text = filled ? from.text : "";
  if (from.kind == Kind::kReasoning) return {{"type", "reasoning_text"}, {"text", text}};
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", json::array()},
          {"logprobs", filled ? items_[block].logprobs : json::array()}};
}

json ResponsesFormat::item_json(size_t block, const char* status, bool filled) const {
  const ContentBlock& from = blocks_.all()[block];
  const std::string& id = items_[block].id;
  json parts = json::array();
  if (filled && from.kind != Kind::kToolCall) parts.push_back(part_json(block, true));
  switch (from.kind) {
    case Kind::kReasoning:
      return {{"id", id},
              {"type", "reasoning"},
              {"summary", json::array()},
              {"content", std::move(parts)},
              {"status", status}};
    case Kind::kContent:
      return {{"id", id},
              {"type", "message"},
              {"role", "assistant"},
              {"status", status},
              {"content", std::move(parts)}};
    case Kind::kToolCall:
      break;
  }
  return call_json(block, status, filled);
}

const OfferedTool* ResponsesFormat::offered(const ContentBlock& call) const {
  const auto found = request_.offered.find(call.call_name);
  return found == request_.offered.end() ? nullptr : &found->second;
}

bool ResponsesFormat::is_text_call(const ContentBlock& block) const {
  const OfferedTool* tool = block.kind == Kind::kToolCall ? offered(block) : nullptr;
  return tool != nullptr && tool->is_text;
}

json ResponsesFormat::call_json(size_t block, const char* status, bool filled) const {
  const ContentBlock& from = blocks_.all()[block];
  const OfferedTool* tool = offered(from);
  const bool is_text = tool != nullptr && tool->is_text;
  json call = {{"id", items_[block].id},
               {"type", is_text ? "custom_tool_call" : "function_call"},
               {"status", status},
               {"call_id", from.call_id},
               {"name", tool == nullptr ? from.call_name : tool->name}};
  if (tool != nullptr && !tool->name_space.empty()) call["namespace"] = tool->name_space;
  call[is_text ? "input" : "arguments"] = !filled   ? std::string()
                                          : is_text ? input_text(from.text)
                                                    : from.text;
  return call;
}

json ResponsesFormat::finished(const RequestOutput& output) const {
  const bool cut = output.finish_reason == FinishReason::kLength;
  const bool aborted = output.finish_reason == FinishReason::kAbort;
  json response = unfinished(cut ? "incomplete" : aborted ? "cancelled" : "completed");
  if (cut) response["incomplete_details"] = {{"reason", "max_output_tokens"}};
  const size_t count = blocks_.all().size();
  for (size_t i = 0; i < count; ++i) {
    const bool last = i + 1 == count;
    response["output"].push_back(
        item_json(i, last && (cut || aborted) ? "incomplete" : "completed", true));
  }
  response["usage"] = usage_of(output.stats);
  return response;
}

json ResponsesFormat::failed(const ServeError& error) const {
  json response = unfinished("failed");
  const char* code = error.http == 429 ? "rate_limit_exceeded" : "server_error";
  response["error"] = {{"code", code}, {"message", error.status.message()}};
  return response;
}

void ResponsesFormat::keep(const json& response) {
  const json& status = response.at("status");
  const bool said = status == "completed" || status == "incomplete";
  if (said && keep_output_ != nullptr) keep_output_(response.at("output"));
  if (!request_.store) return;
  json messages = request_.messages;
  json answer = {{"role", "assistant"}, {"content", blocks_.text_of(Kind::kContent)}};
  for (const ContentBlock& block : blocks_.all()) {
    if (block.kind != Kind::kToolCall) continue;
    add_tool_call(block.call_id, block.call_name, block.text, &answer);
  }
  messages.push_back(std::move(answer));
  StoredResponse kept = {response, std::move(messages), false, request_.items};
  if (request_.background) return store_.finish(id_, std::move(kept));
  store_.put(id_, std::move(kept));
}

void ResponsesFormat::add_blocks(const RequestOutput& output, std::string* events) {
  for (json& token : logprobs_of(output, request_.chat.requests.front().sampling)) {
    new_logprobs_.push_back(std::move(token));
  }
  const auto tell = [&](const std::vector<BlockStep>& steps) {
    for (const BlockStep& step : steps) *events += step_events(step);
  };
  const auto split = [&](const std::vector<ChatPiece>& pieces) {
    reasoning_.add(pieces);
    tell(blocks_.add(pieces));
  };
  split(parser_->push(output.text));
  const auto in_text = [this] {
    return blocks_.all().empty() || blocks_.all().back().kind == Kind::kContent;
  };
  // Those of reasoning and calls are not told.
  if (!in_text()) new_logprobs_ = json::array();
  if (!output.finished) return;
  split(parser_->finish());
  if (in_text()) keep_last_logprobs();
  if (output.finish_reason != FinishReason::kStop) closing_status_ = "incomplete";
  tell(blocks_.finish());
}

// The token that ends a text has no piece of it, and stands behind those that have.
void ResponsesFormat::keep_last_logprobs() {
  if (items_.empty()) return;
  for (const json& token : new_logprobs_) items_.back().logprobs.push_back(token);
  new_logprobs_ = json::array();
}

std::string ResponsesFormat::whole(const std::vector<const OutputSum*>& sums) {
  const RequestOutput& output = sums.front()->choices().front();
  std::string ignored;
  add_blocks(output, &ignored);
  const json response = finished(output);
  keep(response);
  return json_text(response);
}

std::string ResponsesFormat::error(const ServeError& error) {
  if (request_.background) keep(failed(error));
  return json_text(openai_error(error));
}

std::string ResponsesFormat::event(const char* name, json fields) {
  json all = {{"type", name}, {"sequence_number", num_events_++}};
  all.update(fields);
  return sse_event(name, all);
}

json ResponsesFormat::place_of(size_t block) const {
  json place = {{"item_id", items_[block].id}, {"output_index", block}};
  if (blocks_.all()[block].kind != Kind::kToolCall) place["content_index"] = 0;
  return place;
}

std::string ResponsesFormat::open_events(size_t block) {
  const Kind kind = blocks_.all()[block].kind;
  items_.push_back({make_item_id(id_prefix(kind, is_text_call(blocks_.all()[block])))});
  std::string events =
      event("response.output_item.added",
            {{"output_index", block}, {"item", item_json(block, "in_progress", false)}});
  if (kind == Kind::kToolCall) return events;
  json fields = place_of(block);
  fields["part"] = part_json(block, false);
  return events + event("response.content_part.added", std::move(fields));
}

std::string ResponsesFormat::close_events(size_t block) {
  const ContentBlock& from = blocks_.all()[block];
  json done = place_of(block);
  std::string events;
  if (is_text_call(from)) {
    json piece = done;
    piece["delta"] = done["input"] = input_text(from.text);
    events = event("response.custom_tool_call_input.delta", std::move(piece));
    events += event("response.custom_tool_call_input.done", std::move(done));
  } else if (from.kind == Kind::kToolCall) {
    done["name"] = call_json(block, closing_status_, false)["name"];
    done["arguments"] = from.text;
    events = event("response.function_call_arguments.done", std::move(done));
  } else {
    json part = place_of(block);
    part["part"] = part_json(block, true);
    done["text"] = from.text;
    const bool reasons = from.kind == Kind::kReasoning;
    if (!reasons) done["logprobs"] = items_[block].logprobs;
    events = event(reasons ? "response.reasoning_text.done" : "response.output_text.done",
                   std::move(done));
    events += event("response.content_part.done", std::move(part));
  }
  return events +
         event("response.output_item.done",
               {{"output_index", block}, {"item", item_json(block, closing_status_, true)}});
}

std::string ResponsesFormat::step_events(const BlockStep& step) {
  if (step.kind == BlockStep::Kind::kOpen) return open_events(step.block);
  if (step.kind == BlockStep::Kind::kClose) return close_events(step.block);
  // Its text is within its arguments, and comes when they have ended.
  if (is_text_call(blocks_.all()[step.block])) return "";
  json fields = place_of(step.block);
  fields["delta"] = step.text;
  switch (blocks_.all()[step.block].kind) {
    case Kind::kReasoning:
      return event("response.reasoning_text.delta", std::move(fields));
    case Kind::kToolCall:
      return event("response.function_call_arguments.delta", std::move(fields));
    case Kind::kContent:
      break;
  }
  // All that came with this piece of text and with what of it was held back.
  for (const json& token : new_logprobs_) items_[step.block].logprobs.push_back(token);
  fields["logprobs"] = std::exchange(new_logprobs_, json::array());
  return event("response.output_text.delta", std::move(fields));
}

std::string ResponsesFormat::events(size_t, const ChoiceOutput& news) {
  std::string events;
  if (num_events_ == 0) {
    const json response = unfinished("in_progress");
    events = event("response.created", {{"response", response}});
    events += event("response.in_progress", {{"response", response}});
  }
  add_blocks(news.output, &events);
  last_.finish_reason = news.output.finish_reason;
  last_.stats = news.output.stats;
  return events;
}

std::string ResponsesFormat::last_events() {
  const json response = finished(last_);
  keep(response);
  const bool whole = last_.finish_reason == FinishReason::kStop;
  return event(whole ? "response.completed" : "response.incomplete", {{"response", response}});
}

std::string ResponsesFormat::error_events(const ServeError& error) {
  const json response = failed(error);
  keep(response);
  return event("response.failed", {{"response", response}});
}

}  // namespace foretoken
