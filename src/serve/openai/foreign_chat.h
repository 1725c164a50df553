#pragma once
#include "serve/fields/json_fields.h"

namespace foretoken {

// The part of foreign fields that only chats have: "think", "thinking", "enable_thinking" and
// "reasoning" become variables of the template, "functions" and their messages become tools, tools
// that are no functions or not allowed are left out, those in the form of /v1/responses or of
// Anthropic become those of chats, and so do Anthropic's blocks of calls and results, a last answer
// with "prefix" or "partial" goes on, and "usage" asks for counts in a stream.
void read_foreign_chat(JsonFields& fields);

// Whether a body gives its tools as "functions", in OpenAI's first form.
bool has_old_functions(const nlohmann::ordered_json& body);

// {"enable_thinking", "thinking"}: what templates call the switch of their reasoning. Names that
// `variables` has stay.
void switch_thinking(bool on, nlohmann::ordered_json* variables);

}  // namespace foretoken
