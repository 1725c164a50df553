#pragma once
#include "serve/flow/serve_context.h"

namespace foretoken {

// Answers with the length of the prompt that a chat makes, "input_tokens", behind what `answer`
// holds.
Status respond_prompt_length(ServeContext& context, http::Exchange& exchange, OpenAiRequest request,
                             nlohmann::ordered_json answer);

// POST /v1/chat/completions/input_tokens and /v1/responses/input_tokens, which OpenAI and llama.cpp
// have: {"object": "response.input_tokens", "input_tokens": count}.
Status handle_chat_input_tokens(ServeContext& context,
                                const std::shared_ptr<http::Exchange>& exchange, const Body& body);
Status handle_response_input_tokens(ServeContext& context,
                                    const std::shared_ptr<http::Exchange>& exchange,
                                    const Body& body);

// POST /v1/chat/completions/render and /v1/completions/render of vLLM: what the body asks for as a
// body of /inference/v1/generate, of a completion a list with one for each prompt.
Status handle_render(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                     OpenAiKind kind, const Body& body);

}  // namespace foretoken
