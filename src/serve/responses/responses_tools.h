#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "serve/fields/json_fields.h"

namespace foretoken {

// What a client calls a tool that the model sees as a function of another name or form.
struct OfferedTool {
  std::string name;
  std::string name_space;  // empty: none
  bool is_text = false;    // its input is a text: the member "input" of the function's arguments
};

// By the name of the function that the model sees; functions that a client gave as such are not
// among them.
using OfferedTools = std::map<std::string, OfferedTool>;

// The name of the function that stands for one of a namespace: "mcp__files" and "read" are
// "mcp__files__read".
std::string function_of(const std::string& name_space, const std::string& name);

// The text that a call gives a tool whose input is one: {"input": TEXT} of its arguments, or the
// arguments as they are.
std::string input_text(const std::string& arguments);

// Reads the "tools" of /v1/responses into those of a chat. Tools of type "custom" are functions
// with one text, the grammar of which is described; those of a "namespace" are functions with its
// name in front; `offered` has both. Tools that run at a service are left out and told in `notes`.
Status read_response_tools(const nlohmann::ordered_json& tools, const FieldNotes& notes,
                           nlohmann::ordered_json* chat, OfferedTools* offered);

// Reads its "tool_choice" likewise. "auto" and "required" without tools mean nothing; neither does
// a tool that was left out.
Status read_response_choice(const nlohmann::ordered_json& choice, const FieldNotes& notes,
                            nlohmann::ordered_json* chat);

}  // namespace foretoken
