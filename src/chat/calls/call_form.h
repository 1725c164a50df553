#pragma once
#include <optional>
#include <string>

#include "chat/calls/chat_parser.h"

namespace foretoken {

// Whether a function asks for arguments that follow its schema ("strict": true).
bool is_strict_function(const nlohmann::ordered_json& function);
// Whether one of `tools` does.
bool any_strict_tool(const nlohmann::ordered_json& tools);

// A structural tag under which a text is free until a call begins in the format of the options'
// tool parser: the call then names one of the tools, and its arguments follow the schema of a
// strict tool, or are some object. Nothing for formats that no grammar is written for.
std::optional<std::string> form_of_calls(const ChatParserOptions& options);

}  // namespace foretoken
