#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "serve/fields/api_fields.h"
#include "serve/fields/json_fields.h"
#include "serve/openai/openai_request.h"

namespace foretoken {

// Other protocols are read by writing the body of /v1/chat/completions that means the same.

// Copies fields that mean the same in a body of `from` and in one of `to` (seed, min_p,
// speculative, ...), and other servers' names (repeat_penalty, ...), as far as they are there.
void copy_shared_fields(JsonFields& fields, ApiBody from, ApiBody to, nlohmann::ordered_json* body);

// Copies one field under another name, if it is there.
void copy_field(JsonFields& fields, const char* from, const char* to, nlohmann::ordered_json* chat);

// Reads what was written; `warnings` come before those of the chat.
Result<OpenAiRequest> parse_as_chat(const nlohmann::ordered_json& chat,
                                    const OpenAiDefaults& defaults,
                                    std::vector<std::string> warnings);

// {"role": "assistant", "content": null, "tool_calls": [{"id", "type", "function": {"name",
// "arguments"}}]}; adds a call to `message`, which may be null or have content already.
void add_tool_call(const std::string& id, const std::string& name, const std::string& arguments,
                   nlohmann::ordered_json* message);

// Whether a 'tool_choice' says which tools may be called: {"type": "allowed_tools", ...}.
bool is_allowed_tools(const nlohmann::ordered_json& choice);

// Leaves those of the "tools" of `chat` that `choice` names, and its mode as "tool_choice"; neither
// where it names none. `choice` is in the form of responses ("mode", and "tools" with a "name"), or
// in that of chats, which have both in "allowed_tools" and names in a "function". Names of no tool
// are errors.
Status keep_allowed_tools(const nlohmann::ordered_json& choice, nlohmann::ordered_json* chat);

}  // namespace foretoken
