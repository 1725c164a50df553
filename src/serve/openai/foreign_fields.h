#pragma once
#include <string>
#include <utility>
#include <vector>

#include "serve/fields/json_fields.h"

namespace foretoken {

// What clients of llama.cpp, Ollama, Together, OpenRouter, LM Studio and OpenAI's first chats send
// beside OpenAI's and vLLM's names.

// What has no counterpart among vLLM's fields.
struct ForeignWishes {
  bool goes_to_the_end = false;  // the output may be as long as the context
  // "logit_bias" of llama.cpp: of each token of a text.
  std::vector<std::pair<std::string, float>> text_biases;
};

// Makes stand-ins in `fields` for vLLM's names out of those fields of a chat (`chat`) or a
// completion: "repeat_penalty", "n_predict", "max_tokens": -1 (up to `max_model_len`), "options",
// "think", "thinking", "enable_thinking", "reasoning", "format",
// "functions", "function_call", "n_probs", "usage" and others. What has no counterpart and would
// change the answer is a warning; what the body says under vLLM's name wins.
ForeignWishes read_foreign_fields(JsonFields& fields, bool chat, int max_model_len);

// Whether a client says `model` where it knows an address alone, as huggingface_hub ("dummy") does
// and documents of servers that have one model: whatever is served there is meant.
bool is_placeholder_model(const std::string& model);

// Names that it reads, for protocols that are written as chats.
const std::vector<const char*>& foreign_names();

}  // namespace foretoken
