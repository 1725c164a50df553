#pragma once
#include <nlohmann/json.hpp>

#include "serve/openai/openai_request.h"

namespace foretoken {

// Reads a body of Anthropic's /v1/messages or /v1/messages/count_tokens: system, messages
// (messages_input.h), tools, tool_choice, stop_sequences, thinking, output_config, and vLLM's
// further sampling fields by their names. Without "max_tokens" the answer may be as long as fits.
// Tools that would run at Anthropic's are left out with a warning.
Result<OpenAiRequest> parse_messages_request(const nlohmann::ordered_json& body,
                                             const OpenAiDefaults& defaults);

}  // namespace foretoken
