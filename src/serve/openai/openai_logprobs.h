#pragma once
#include <foretoken/request.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace foretoken {

// What the token stands for; of a part of a character its bytes.
const std::string& token_bytes(const Logprob& token);

// {"content": [{"token", "bytes", "logprob", "top_logprobs": [...]}]}, the shape of chats.
nlohmann::ordered_json chat_logprobs(std::span<const TokenLogprobs> tokens);

// {"text_offset", "token_logprobs", "tokens", "top_logprobs"}, the shape of completions. A part of
// a character is named as OpenAI names it, "bytes:\xf0\x9f". Offsets count characters of tokens
// from `offset` on, which is left behind the last: what a stop string holds back of a stream's text
// counts with its token. `echoed`, where a completion repeats its prompt, is the first token's
// text, which has no log-probability; the prompt's other tokens are then the first of `tokens`.
nlohmann::ordered_json completion_logprobs(std::span<const TokenLogprobs> tokens,
                                           const std::string* echoed, int64_t& offset);

// Of UTF-8.
int64_t num_characters(const std::string& text);

// vLLM's list: null for the first token, then {"id": {"logprob", "rank", "decoded_token"}}.
nlohmann::ordered_json prompt_logprobs(std::span<const TokenLogprobs> tokens);

}  // namespace foretoken
