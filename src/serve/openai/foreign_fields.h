#pragma once
#include <span>

#include "serve/fields/json_fields.h"

namespace foretoken {

// What clients of llama.cpp, Ollama, Together, OpenRouter, LM Studio and OpenAI's first chats send
// beside OpenAI's and vLLM's names.

// Makes stand-ins in `fields` for vLLM's names out of those fields of a chat (`chat`) or a
// completion: "repeat_penalty", "n_predict", "max_tokens": -1 (up to `max_model_len`), "options",
// "think", "thinking", "enable_thinking", "reasoning", "format",
// "functions", "function_call", "n_probs", "usage" and others. What has no counterpart and would
// change the answer is a warning; what the body says under vLLM's name wins.
void read_foreign_fields(JsonFields& fields, bool chat, int max_model_len);

// Names that it reads, for protocols that are written as chats.
std::span<const char* const> foreign_names();

}  // namespace foretoken
