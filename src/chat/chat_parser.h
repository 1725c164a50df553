#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foretoken {

// What is new about one tool call. The first piece of a call has its id and whole name.
struct ToolCallDelta {
  int index = 0;  // among the calls of the message
  std::string id;
  std::string name;
  std::string arguments;  // a piece of JSON text
};

// What a piece of a model's text turned out to be.
struct ChatDelta {
  std::string reasoning;
  std::string content;
  std::vector<ToolCallDelta> tool_calls;

  bool empty() const { return reasoning.empty() && content.empty() && tool_calls.empty(); }
};

// Which format a model writes, and what the request allows.
struct ChatParserOptions {
  std::string tool_parser;       // vLLM's names ("hermes", "llama3_json", ...); empty: no calls
  std::string reasoning_parser;  // vLLM's names ("deepseek_r1", "qwen3", ...); empty: none
  nlohmann::ordered_json tools;  // the request's array, or null
  // "none", "auto", "required", or the name of the only function that may be called.
  std::string tool_choice = "auto";
  bool parallel_tool_calls = true;
  bool starts_in_reasoning = false;  // the prompt has opened the reasoning part already
};

// Splits the text of one choice into reasoning, content and tool calls while it comes. Text that
// may yet become a marker is held back until that is certain; whatever is no well-formed call stays
// content, so that no text is lost. One thread.
class ChatParser {
 public:
  virtual ~ChatParser() = default;
  // `text`: the next piece, whole characters.
  virtual ChatDelta push(std::string_view text) = 0;
  // After the last piece.
  virtual ChatDelta finish() = 0;
  // Calls so far; a message with calls ends with "tool_calls".
  virtual int num_tool_calls() const = 0;
};

// kInvalidArgument, with the names that exist, for a parser that does not.
Result<std::unique_ptr<ChatParser>> make_chat_parser(const ChatParserOptions& options);

std::vector<std::string> tool_parser_names();
std::vector<std::string> reasoning_parser_names();

}  // namespace foretoken
