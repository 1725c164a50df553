#include "chat/calls/chat_parser.h"

#include <optional>
#include <utility>

#include "chat/calls/forced_calls.h"
#include "chat/calls/glimmer_calls.h"
#include "chat/calls/harmony_calls.h"
#include "chat/calls/inkling_calls.h"
#include "chat/calls/parser_table.h"
#include "chat/scan/call_openings.h"
#include "chat/scan/tag_suffix.h"

namespace foretoken {
namespace {

bool is_forced(const std::string& choice) { return choice != "none" && choice != "auto"; }

bool has_tools(const ChatParserOptions& options) {
  return options.tools.is_array() && !options.tools.empty() && options.tool_choice != "none";
}

std::vector<std::string> function_names(const nlohmann::ordered_json& tools) {
  std::vector<std::string> names;
  for (const auto& tool : tools) {
    if (!tool.is_object() || !tool.contains("function") || !tool["function"].is_object()) continue;
    const nlohmann::ordered_json name = tool["function"].value("name", nlohmann::ordered_json());
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names;
}

// The form that one of the two names.
MessageForm message_form(const ChatParserOptions& options) {
  const ToolParserEntry* tool = find_tool_parser(options.tool_parser);
  if (tool != nullptr && tool->messages != MessageForm::kNone) return tool->messages;
  const ReasoningParserEntry* reasoning = find_reasoning_parser(options.reasoning_parser);
  return reasoning == nullptr ? MessageForm::kNone : reasoning->messages;
}

// Null where no choice forces a form.
std::unique_ptr<ToolParser> make_forced_parser(const ChatParserOptions& options) {
  if (!has_tools(options) || !is_forced(options.tool_choice)) return nullptr;
  if (options.tool_choice == "required") return make_required_calls();
  return std::make_unique<NamedCall>(options.tool_choice);
}

std::unique_ptr<ToolParser> make_tool_parser(const ChatParserOptions& options) {
  std::unique_ptr<ToolParser> forced = make_forced_parser(options);
  const MessageForm form = message_form(options);
  if (form == MessageForm::kHarmony) {
    return std::make_unique<HarmonyCalls>(uses_tool_parser(options), std::move(forced));
  }
  if (form == MessageForm::kInkling) {
    return std::make_unique<InklingCalls>(uses_tool_parser(options), std::move(forced));
  }
  if (form == MessageForm::kGlimmer) {
    return std::make_unique<GlimmerCalls>(uses_tool_parser(options), options.tools,
                                          std::move(forced));
  }
  if (forced != nullptr || !has_tools(options)) return forced;
  const ToolParserEntry* entry = find_tool_parser(options.tool_parser);
  return entry == nullptr ? nullptr : entry->make(options);
}

bool has_suffixed_tags(const ChatParserOptions& options) {
  const ToolParserEntry* tool = find_tool_parser(options.tool_parser);
  const ReasoningParserEntry* reasoning = find_reasoning_parser(options.reasoning_parser);
  return (tool != nullptr && tool->suffixed_tags) ||
         (reasoning != nullptr && reasoning->suffixed_tags);
}

CallSink::Options sink_options(const ChatParserOptions& options, bool has_parser) {
  CallSink::Options sink;
  const ToolParserEntry* entry = find_tool_parser(options.tool_parser);
  if (entry != nullptr) sink.id_style = entry->id_style;
  sink.parallel_tool_calls = options.parallel_tool_calls;
  sink.drop_space = has_parser && has_tools(options);
  if (has_parser && has_tools(options)) sink.names = function_names(options.tools);
  return sink;
}

class SplittingParser : public ChatParser {
 public:
  explicit SplittingParser(const ChatParserOptions& options)
      : tools_(make_tool_parser(options)),
        sink_(sink_options(options, tools_ != nullptr)),
        drop_space_(options.drop_leading_space) {
    if (has_suffixed_tags(options)) suffix_.emplace(suffixed_tag_names());
    const ReasoningParserEntry* entry = find_reasoning_parser(options.reasoning_parser);
    if (entry == nullptr || entry->messages != MessageForm::kNone) return;
    ReasoningFormat format = entry->format;
    if (uses_tool_parser(options)) {
      format.ends =
          foretoken::joined(std::move(format.ends),
                            call_openings(options.tool_parser, function_names(options.tools)));
    }
    reasoning_.emplace(format, options.starts_in_reasoning);
  }

  std::vector<ChatPiece> push(std::string_view text) override {
    if (!suffix_) {
      split(text);
      return sink_.take();
    }
    std::string plain;
    for (const char byte : text) suffix_->feed(byte, &plain);
    split(plain);
    return sink_.take();
  }

  std::vector<ChatPiece> finish() override {
    if (suffix_) split(suffix_->take_held());
    std::string rest;
    if (reasoning_) reasoning_->finish(&sink_, &rest);
    content(rest);
    if (tools_ != nullptr) tools_->finish(&sink_);
    sink_.finish();
    return sink_.take();
  }

  int num_tool_calls() const override { return sink_.num_calls(); }

 private:
  void split(std::string_view text) {
    if (!reasoning_) return content(text);
    for (const char byte : text) {
      std::string rest;
      reasoning_->feed(byte, &sink_, &rest);
      content(rest);
    }
  }

  void content(std::string_view text) {
    while (drop_space_ && !text.empty() && is_space(text.front())) text.remove_prefix(1);
    drop_space_ = drop_space_ && text.empty();
    if (tools_ == nullptr) return sink_.content(text);
    for (const char byte : text) tools_->feed(byte, &sink_);
  }

  std::unique_ptr<ToolParser> tools_;
  CallSink sink_;
  bool drop_space_;  // until other content came
  std::optional<ReasoningScan> reasoning_;
  std::optional<TagSuffix> suffix_;
};

bool leaves_open(const std::string& name) {
  return name.empty() || name == "auto" || name == "none";
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

void add_pieces(const std::vector<ChatPiece>& pieces, ChatDelta* sum) {
  for (const ChatPiece& piece : pieces) {
    if (piece.kind == ChatPiece::Kind::kReasoning) sum->reasoning += piece.text;
    if (piece.kind == ChatPiece::Kind::kContent) sum->content += piece.text;
    if (piece.kind != ChatPiece::Kind::kToolCall) continue;
    std::vector<ToolCallDelta>& calls = sum->tool_calls;
    if (calls.empty() || calls.back().index != piece.call_index) {
      calls.push_back({piece.call_index, piece.call_id, piece.call_name, ""});
    }
    calls.back().arguments += piece.text;
  }
}

Status check_parser_names(const std::string& tool_parser, const std::string& reasoning_parser) {
  if (!leaves_open(tool_parser) && find_tool_parser(tool_parser) == nullptr) {
    return invalid_argument("there is no tool-call parser '" + tool_parser +
                            "'; use auto, none or one of " + listed(tool_parser_names()));
  }
  if (!leaves_open(reasoning_parser) && find_reasoning_parser(reasoning_parser) == nullptr) {
    return invalid_argument("there is no reasoning parser '" + reasoning_parser +
                            "'; use auto, none or one of " + listed(reasoning_parser_names()));
  }
  return {};
}

Result<std::unique_ptr<ChatParser>> make_chat_parser(const ChatParserOptions& options) {
  FT_RETURN_IF_ERROR(check_parser_names(options.tool_parser, options.reasoning_parser));
  return std::unique_ptr<ChatParser>(std::make_unique<SplittingParser>(options));
}

bool uses_tool_parser(const ChatParserOptions& options) {
  return find_tool_parser(options.tool_parser) != nullptr && has_tools(options) &&
         !is_forced(options.tool_choice);
}

bool needs_special_tokens(const ChatParserOptions& options) {
  const ToolParserEntry* tool = find_tool_parser(options.tool_parser);
  const ReasoningParserEntry* reasoning = find_reasoning_parser(options.reasoning_parser);
  return (uses_tool_parser(options) && tool->special_tokens) ||
         (reasoning != nullptr && reasoning->special_tokens);
}

bool opens_reasoning(const std::string& reasoning_parser, std::string_view prompt_end) {
  const ReasoningParserEntry* entry = find_reasoning_parser(reasoning_parser);
  if (entry == nullptr) return false;
  std::string plain;
  if (entry->suffixed_tags) {
    plain = without_suffixes(suffixed_tag_names(), prompt_end);
    prompt_end = plain;
  }
  while (!prompt_end.empty() && is_space(prompt_end.back())) prompt_end.remove_suffix(1);
  for (const std::string& marker : entry->format.open) {
    if (prompt_end.ends_with(marker)) return true;
  }
  return false;
}

}  // namespace foretoken
