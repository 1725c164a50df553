#pragma once
#include <nlohmann/json.hpp>

namespace foretoken {

// Chats whose messages, tools and choice of a tool have Anthropic's form, as Cursor sends them to
// OpenAI's endpoints; each function leaves what has another form as it is.

// Whether a message has blocks of calls or of their results.
bool has_call_blocks(const nlohmann::ordered_json& messages);

// Messages whose blocks "tool_use" are "tool_calls", and whose blocks "tool_result" are messages of
// the role "tool", which stand before what the user says beside them.
nlohmann::ordered_json without_call_blocks(const nlohmann::ordered_json& messages);

// Whether a tool is {"name", "input_schema" or "parameters"} without OpenAI's {"function": ...}
// around it.
bool is_bare_tool(const nlohmann::ordered_json& tool);

// A bare tool as {"type": "function", "function": {"name", "description", "parameters"}}.
nlohmann::ordered_json tool_of_bare(const nlohmann::ordered_json& tool);

// {"type": "auto" | "any" | "none" | "tool", "name"} as OpenAI has it; null for another form.
nlohmann::ordered_json choice_of_blocks(const nlohmann::ordered_json& choice);

}  // namespace foretoken
