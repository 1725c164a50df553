#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foretoken {

// One part of a message that came with a piece of text. `text` is reasoning, content, or a piece of
// the JSON text of a call's arguments; the first piece of a call has its id and whole name.
struct ChatPiece {
  enum class Kind { kReasoning, kContent, kToolCall };

  Kind kind = Kind::kContent;
  std::string text;
  int call_index = 0;  // among the calls of the message
  std::string call_id;
  std::string call_name;
};

// What is new about one tool call. The first piece of a call has its id and whole name.
struct ToolCallDelta {
  int index = 0;  // among the calls of the message
  std::string id;
  std::string name;
  std::string arguments;  // a piece of JSON text
};

// Pieces by kind, as OpenAI's chat endpoint tells them.
struct ChatDelta {
  std::string reasoning;
  std::string content;
  std::vector<ToolCallDelta> tool_calls;

  bool empty() const { return reasoning.empty() && content.empty() && tool_calls.empty(); }
};

// Adds pieces to a message or to what is new about one; the pieces of a call become one.
void add_pieces(const std::vector<ChatPiece>& pieces, ChatDelta* sum);

// Which format a model writes, and what the request allows.
struct ChatParserOptions {
  std::string tool_parser;       // vLLM's names ("hermes", "llama3_json", ...); empty: no calls
  std::string reasoning_parser;  // vLLM's names ("deepseek_r1", "qwen3", ...); empty: none
  nlohmann::ordered_json tools;  // the request's array, or null
  // "none", "auto", "required", or the name of the only function that may be called. The text of
  // the last two has the form that tool_choice_outputs() forces, whatever the model's own is.
  std::string tool_choice = "auto";
  bool parallel_tool_calls = true;   // false: calls after the first are dropped
  bool starts_in_reasoning = false;  // the prompt has opened the reasoning part already
  // White space before the content is layout between the reasoning and a form: it is left out.
  bool drop_leading_space = false;
};

// Splits the text of one choice into reasoning, content and tool calls while it comes. How the text
// is cut into pieces changes nothing about the sum. Text that may yet become a marker is held back
// until that is certain. What is no call stays content; a call that goes wrong after its arguments
// have begun keeps them, closed, and the rest up to its end is left out. The arguments of a call
// are one JSON object in the end, also where the text is cut off. Markers are never content, and
// white space around calls is left out where no content stands. One thread.
class ChatParser {
 public:
  virtual ~ChatParser() = default;
  // `text`: the next piece, whole characters. Parts come in the order of the text.
  virtual std::vector<ChatPiece> push(std::string_view text) = 0;
  // After the last piece.
  virtual std::vector<ChatPiece> finish() = 0;
  virtual int num_tool_calls() const = 0;
};

// kInvalidArgument, with the names that exist, for a parser that does not.
Result<std::unique_ptr<ChatParser>> make_chat_parser(const ChatParserOptions& options);

// The same check without a parser; "auto" and "none" are names, too.
Status check_parser_names(const std::string& tool_parser, const std::string& reasoning_parser);

std::vector<std::string> tool_parser_names();
std::vector<std::string> reasoning_parser_names();

// Whether calls are looked for in the model's own format, which a choice that forces one leaves
// out.
bool uses_tool_parser(const ChatParserOptions& options);

// Whether the markers may be special tokens of the model, so that the text needs them
// (skip_special_tokens = false).
bool needs_special_tokens(const ChatParserOptions& options);

// Whether a prompt that ends with `prompt_end` has opened the reasoning part.
bool opens_reasoning(const std::string& reasoning_parser, std::string_view prompt_end);

}  // namespace foretoken
