#pragma once

namespace foretoken {

// Bodies of the APIs that fields belong to, as bits.
enum ApiBody : unsigned {
  kChatBody = 1,
  kCompletionBody = 2,
  kEmbeddingBody = 4,
  kMessagesBody = 8,  // of Anthropic's /v1/messages
  kCountBody = 16,    // of its count of tokens
  kResponsesBody = 32,
  kTokenizeBody = 64,  // of a chat
  kLlamaBody = 128,    // llama.cpp's /completion
};

inline constexpr unsigned kOpenAiBodies = kChatBody | kCompletionBody;
inline constexpr unsigned kOpenAiTexts = kOpenAiBodies | kTokenizeBody;
inline constexpr unsigned kAnthropicBodies = kMessagesBody | kCountBody;
// Texts with sampling, under vLLM's names.
inline constexpr unsigned kVllmTexts = kOpenAiTexts | kAnthropicBodies | kResponsesBody;
inline constexpr unsigned kAllTexts = kVllmTexts | kLlamaBody;

}  // namespace foretoken
