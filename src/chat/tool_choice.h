#pragma once
#include <foretoken/request.h>

#include <optional>

#include "chat/calls/chat_parser.h"

namespace foretoken {

// Reads OpenAI's "tool_choice" ("none", "auto", "required", {"type": "function", "function":
// {"name"}}) against the request's tools into the form of ChatParserOptions::tool_choice. Without
// tools, a missing choice is "none", otherwise "auto". The error says what is wrong.
Result<std::string> read_tool_choice(const nlohmann::ordered_json& choice,
                                     const nlohmann::ordered_json& tools);

// Checks that `tools` (or null) is a list of functions with names.
Status check_tools(const nlohmann::ordered_json& tools);

// The form that a tool choice forces on the output: for "required" a JSON array of {"name",
// "parameters"}, for a named function its parameters, none for the rest; parameters that nobody
// named are not written. Where reasoning comes
// first (a reasoning parser, and a prompt or model that begins with it), the form holds behind its
// closing marker, as after_reasoning() says.
Result<std::optional<StructuredOutputs>> tool_choice_outputs(ChatParserOptions* options);

// How the text marks its reasoning, for the stop strings, which are for what comes behind it.
ReasoningMarkers reasoning_markers(const ChatParserOptions& options);

// `wanted` behind the reasoning part, where the options say that the text begins with one; as it is
// otherwise. Sets drop_leading_space where white space may stand between the two.
StructuredOutputs after_reasoning(StructuredOutputs wanted, ChatParserOptions* options);

}  // namespace foretoken
