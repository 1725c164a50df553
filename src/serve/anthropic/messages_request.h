#pragma once
#include <nlohmann/json.hpp>

#include "serve/openai/openai_request.h"

namespace foretoken {

// Reads a body of Anthropic's /v1/messages, or of /v1/messages/count_tokens where `counts_only`:
// system, messages (messages_input.h), tools, tool_choice, stop_sequences, thinking, output_config,
// and vLLM's further sampling fields by their names. Tools that would run at Anthropic's are left
// out with a warning.
Result<OpenAiRequest> parse_messages_request(const nlohmann::ordered_json& body,
                                             const OpenAiDefaults& defaults, bool counts_only);

}  // namespace foretoken
