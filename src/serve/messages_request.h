#pragma once
#include <nlohmann/json.hpp>

#include "serve/openai_request.h"

namespace foretoken {

// Reads a body of Anthropic's /v1/messages, or of /v1/messages/count_tokens where `counts_only`:
// system, messages of text, thinking, tool_use and tool_result blocks, tools, tool_choice,
// stop_sequences, thinking, and vLLM's further sampling fields by their names. Images and documents
// are Unsupported.
Result<OpenAiRequest> parse_messages_request(const nlohmann::ordered_json& body,
                                             const OpenAiDefaults& defaults, bool counts_only);

}  // namespace foretoken
