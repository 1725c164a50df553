#include "serve/openai/openai_choice.h"

#include <algorithm>

#include "serve/openai/openai_logprobs.h"
#include "serve/openai/openai_response.h"

namespace foretoken {
namespace {

using nlohmann::ordered_json;

ordered_json function_json(const ToolCallDelta& call) {
  ordered_json object = ordered_json::object();
  if (!call.name.empty()) object["name"] = call.name;
  object["arguments"] = call.arguments;
  return object;
}

ordered_json call_json(const ToolCallDelta& call) {
  ordered_json object;
  if (!call.id.empty()) {
    object["id"] = call.id;
    object["type"] = "function";
  }
  object["function"] = function_json(call);
  return object;
}

// The text of the prompt's first token: what the decoded others leave of the prompt.
std::string first_token(const std::string& prompt, std::span<const TokenLogprobs> others) {
  size_t length = 0;
  for (const TokenLogprobs& position : others) length += token_bytes(position.token).size();
  return length < prompt.size() ? prompt.substr(0, prompt.size() - length) : std::string();
}

std::string id_name(int32_t id) { return "token_id:" + std::to_string(id); }

void name_by_id(Logprob& token) {
  token.decoded_token = id_name(token.token_id);
  token.bytes.clear();
}

bool any_call(const std::vector<ChatPiece>& pieces) {
  return std::any_of(pieces.begin(), pieces.end(), [](const ChatPiece& piece) {
    return piece.kind == ChatPiece::Kind::kToolCall;
  });
}

// Tells of each piece of a stream, or once of a whole text.
class WatchedParser final : public ChatParser {
 public:
  WatchedParser(std::unique_ptr<ChatParser> parser, std::function<void(bool)> tell, bool whole)
      : parser_(std::move(parser)), tell_(std::move(tell)), whole_(whole) {}

  std::vector<ChatPiece> push(std::string_view text) override {
    std::vector<ChatPiece> pieces = parser_->push(text);
    if (!whole_) tell_(any_call(pieces));
    return pieces;
  }
  std::vector<ChatPiece> finish() override {
    std::vector<ChatPiece> pieces = parser_->finish();
    const bool found = whole_ ? num_tool_calls() > 0 : any_call(pieces);
    if (whole_ || found) tell_(found);
    return pieces;
  }
  int num_tool_calls() const override { return parser_->num_tool_calls(); }

 private:
  const std::unique_ptr<ChatParser> parser_;
  const std::function<void(bool)> tell_;
  const bool whole_;
};

}  // namespace

std::vector<int> choice_counts(const OpenAiRequest& request) {
  std::vector<int> counts;
  for (const Request& one : request.requests) counts.push_back(std::max(one.sampling.n, 1));
  return counts;
}

bool splits_reasoning(const OpenAiRequest& request) {
  return request.kind == OpenAiKind::kChat && !request.parser.reasoning_parser.empty();
}

std::unique_ptr<ChatParser> make_choice_parser(const OpenAiRequest& request) {
  std::unique_ptr<ChatParser> parser = make_chat_parser(request.parser).value();
  if (!request.on_tool_parse || !uses_tool_parser(request.parser)) return parser;
  return std::make_unique<WatchedParser>(std::move(parser), request.on_tool_parse, !request.stream);
}

ordered_json chat_message(const OpenAiRequest& request, const std::string& text, int* num_calls,
                          ReasoningShare* share) {
  const std::unique_ptr<ChatParser> parser = make_choice_parser(request);
  ChatDelta sum;
  for (const std::vector<ChatPiece>& pieces : {parser->push(text), parser->finish()}) {
    add_pieces(pieces, &sum);
    share->add(pieces);
  }
  *num_calls = parser->num_tool_calls();
  const bool empty = sum.content.empty() && (*num_calls > 0 || !sum.reasoning.empty());
  ordered_json message = {{"role", "assistant"},
                          {"content", empty ? ordered_json(nullptr) : ordered_json(sum.content)},
                          {"refusal", nullptr}};
  if (request.old_functions) {
    if (!sum.tool_calls.empty()) message["function_call"] = function_json(sum.tool_calls.front());
  } else {
    // As OpenAI, without calls no list: some clients take the name alone for a call.
    for (const ToolCallDelta& call : sum.tool_calls) {
      message["tool_calls"].push_back(call_json(call));
    }
  }
  if (request.parser.reasoning_parser.empty() || !request.include_reasoning) return message;
  const ordered_json reasoning =
      sum.reasoning.empty() ? ordered_json(nullptr) : ordered_json(sum.reasoning);
  message["reasoning"] = reasoning;
  message["reasoning_content"] = reasoning;
  return message;
}

ordered_json chat_delta(const OpenAiRequest& request, const ChatDelta& delta) {
  ordered_json object = ordered_json::object();
  if (!delta.reasoning.empty() && request.include_reasoning) {
    object["reasoning"] = delta.reasoning;
    object["reasoning_content"] = delta.reasoning;
  }
  if (!delta.content.empty()) object["content"] = delta.content;
  if (delta.tool_calls.empty()) return object;
  if (request.old_functions) {
    object["function_call"] = function_json(delta.tool_calls.front());
    return object;
  }
  object["tool_calls"] = ordered_json::array();
  for (const ToolCallDelta& call : delta.tool_calls) {
    ordered_json piece = {{"index", call.index}};
    piece.update(call_json(call));
    object["tool_calls"].push_back(std::move(piece));
  }
  return object;
}

std::vector<ChatDelta> deltas_in_turn(const ChatDelta& delta) {
  std::vector<ChatDelta> turns;
  if (!delta.reasoning.empty()) turns.push_back({delta.reasoning, "", {}});
  if (!delta.content.empty()) turns.push_back({"", delta.content, {}});
  const auto add = [&](ToolCallDelta call) { turns.push_back({"", "", {std::move(call)}}); };
  for (const ToolCallDelta& call : delta.tool_calls) {
    if (!call.id.empty()) add({call.index, call.id, call.name, ""});
    if (call.id.empty() || !call.arguments.empty()) add({call.index, "", "", call.arguments});
  }
  if (turns.empty()) turns.emplace_back();
  return turns;
}

ordered_json finish_reason(const OpenAiRequest& request, const RequestOutput& choice,
                           int num_calls) {
  if (!choice.finished) return nullptr;
  if (request.prompt_only) return "length";
  if (num_calls > 0 && choice.finish_reason == FinishReason::kStop) {
    return request.old_functions ? "function_call" : "tool_calls";
  }
  return finish_reason_name(choice.finish_reason);
}

ordered_json stop_reason(const RequestOutput& choice, const SamplingParams& sampling) {
  const std::string& reason = choice.stop_reason;
  if (reason.empty()) return nullptr;
  const bool text =
      std::find(sampling.stop.begin(), sampling.stop.end(), reason) != sampling.stop.end();
  const bool digits = reason.find_first_not_of("0123456789") == std::string::npos;
  if (text || !digits || reason.size() > 9) return reason;
  return std::stoi(reason);
}

ordered_json token_origins(const std::string& text, std::span<const OriginPiece> origins) {
  ordered_json pieces = ordered_json::array();
  size_t begin = 0;
  for (const OriginPiece& piece : origins) {
    begin = std::min(begin, text.size());
    pieces.push_back({{"origin", piece.drafted ? "draft" : "target"},
                      {"num_tokens", piece.num_tokens},
                      {"text", text.substr(begin, piece.num_bytes)}});
    begin += piece.num_bytes;
  }
  return pieces;
}

ordered_json completion_part(const OpenAiRequest& request, const Request& asked,
                             const RequestOutput& news, const std::optional<EchoedPrompt>& echoed,
                             int64_t& offset) {
  const std::string text = request.prompt_only ? "" : news.text;
  ordered_json object = {{"text", echoed ? echoed->text + text : text}, {"logprobs", nullptr}};
  if (!asked.sampling.logprobs) return object;
  std::vector<TokenLogprobs> positions;
  if (echoed) positions.assign(echoed->tokens.begin(), echoed->tokens.end());
  if (!request.prompt_only) {
    positions.insert(positions.end(), news.logprobs.begin(), news.logprobs.end());
  }
  if (request.tokens_as_token_ids) positions = named_by_id(positions);
  std::string first;
  if (echoed) {
    first = first_token(echoed->text, echoed->tokens);
    const std::vector<int32_t> ids = prompt_ids_of(asked, news.stats);
    if (request.tokens_as_token_ids && !ids.empty()) first = id_name(ids.front());
  }
  object["logprobs"] = completion_logprobs(positions, echoed ? &first : nullptr, offset);
  return object;
}

std::vector<int32_t> told_token_ids(const OpenAiRequest& request, const RequestOutput& output) {
  return request.prompt_only ? std::vector<int32_t>() : output.token_ids;
}

std::vector<TokenLogprobs> named_by_id(std::span<const TokenLogprobs> tokens) {
  std::vector<TokenLogprobs> named(tokens.begin(), tokens.end());
  for (TokenLogprobs& position : named) {
    name_by_id(position.token);
    for (Logprob& other : position.top) name_by_id(other);
  }
  return named;
}

}  // namespace foretoken
