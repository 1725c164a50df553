#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/calls/reasoning_scan.h"
#include "chat/calls/tool_parser.h"

namespace foretoken {

// Models whose text is a row of messages, which hold reasoning, content and calls alike.
enum class MessageForm { kNone, kHarmony, kInkling, kGlimmer };

// A line of the table of tool parsers.
struct ToolParserEntry {
  const char* name;     // vLLM's, or an alias
  bool special_tokens;  // its markers may be special tokens
  CallIdStyle id_style;
  std::unique_ptr<ToolParser> (*make)(const ChatParserOptions& options);
  MessageForm messages = MessageForm::kNone;
  bool suffixed_tags = false;  // as for reasoning
};

struct ReasoningParserEntry {
  const char* name;  // vLLM's
  bool special_tokens;
  ReasoningFormat format;
  MessageForm messages = MessageForm::kNone;  // other than kNone: they hold the reasoning
  bool suffixed_tags = false;  // tags have a suffix of the checkpoint, which is passed over
};

// The names of such tags.
std::vector<std::string> suffixed_tag_names();

// Null where the table has no such name.
const ToolParserEntry* find_tool_parser(std::string_view name);
const ReasoningParserEntry* find_reasoning_parser(std::string_view name);

// The table's name for one that somebody typed, as known_parser_name() reads it.
std::string known_tool_parser(std::string_view name);
std::string known_reasoning_parser(std::string_view name);

}  // namespace foretoken
