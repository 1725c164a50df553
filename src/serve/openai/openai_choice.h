#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "serve/answer/output_sum.h"
#include "serve/answer/reasoning_share.h"
#include "serve/openai/openai_request.h"

namespace foretoken {

// Parts that whole answers and streams share.

// How many answers each of the requests has.
std::vector<int> choice_counts(const OpenAiRequest& request);

// Whether the text of a chat is split into reasoning and the rest.
bool splits_reasoning(const OpenAiRequest& request);

// A parser of the text of one choice of a chat, as the request asks for it.
std::unique_ptr<ChatParser> make_choice_parser(const OpenAiRequest& request);

// {"role": "assistant", "content", "reasoning", "tool_calls", ...} of a whole text. Requests with
// "functions" have "function_call" in place of "tool_calls", there and below.
// `*num_calls` receives how many calls there are, `*share` how much of the text is reasoning.
nlohmann::ordered_json chat_message(const OpenAiRequest& request, const std::string& text,
                                    int* num_calls, ReasoningShare* share);

// {"content", "reasoning", "reasoning_content", "tool_calls"}, as far as there is anything of each.
nlohmann::ordered_json chat_delta(const OpenAiRequest& request, const ChatDelta& delta);

// What is new about a message in the order of chunks, at least one: reasoning, content and each
// piece of a call stand apart, and a call opens with its name and empty arguments, since clients
// count on both, however many tokens a step gave.
std::vector<ChatDelta> deltas_in_turn(const ChatDelta& delta);

// "stop", "length", "tool_calls", "function_call", "abort" or null while it runs.
nlohmann::ordered_json finish_reason(const OpenAiRequest& request, const RequestOutput& choice,
                                     int num_calls);

// The stop string or the stop token's id that ended the text, or null.
nlohmann::ordered_json stop_reason(const RequestOutput& choice, const SamplingParams& sampling);

// [{"origin": "draft" | "target", "num_tokens", "text"}]: in order, all of `text`.
nlohmann::ordered_json token_origins(const std::string& text, std::span<const OriginPiece> origins);

// A prompt that a completion repeats. The log-probabilities of its tokens but the first come with
// the request's choice 0 and hold for all of its choices.
struct EchoedPrompt {
  std::string text;
  std::span<const TokenLogprobs> tokens;
};

// {"text", "logprobs"} of what is new about a choice of a completion, or of all of it. `echoed`:
// the prompt where it comes first; `offset`: characters of tokens told already, raised by these.
nlohmann::ordered_json completion_part(const OpenAiRequest& request, const Request& asked,
                                       const RequestOutput& news,
                                       const std::optional<EchoedPrompt>& echoed, int64_t& offset);

// The ids of an output that are told: none where only the prompt is wanted.
std::vector<int32_t> told_token_ids(const OpenAiRequest& request, const RequestOutput& output);

// As "return_tokens_as_token_ids" wants tokens named.
std::vector<TokenLogprobs> named_by_id(std::span<const TokenLogprobs> tokens);

}  // namespace foretoken
