#pragma once
#include <foretoken/engine.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

enum class OpenAiKind { kChat, kCompletion, kEmbedding };

// What a body leaves open.
struct OpenAiDefaults {
  SamplingParams sampling;  // Engine::default_sampling_params()
  int max_model_len = 0;    // max_tokens of a chat that names none
  // Names that "model" may have; empty: any.
  std::vector<std::string> model_names;
  Pooling pooling = Pooling::kLast;  // of embeddings
  SpeculativeParams speculative;     // of texts
};

// A body of /v1/chat/completions, /v1/completions or /v1/embeddings.
struct OpenAiRequest {
  OpenAiKind kind = OpenAiKind::kChat;
  std::string model;
  std::vector<Request> requests;  // one for each prompt
  std::string messages_json;      // of a chat: the prompt of the only request
  std::string arguments_json;     // for the chat template
  bool stream = false;
  bool include_usage = false;     // in a stream
  bool echo = false;              // the prompt comes before the text
  bool prompt_only = false;       // echo with max_tokens 0: only the prompt is wanted
  bool base64 = false;            // embeddings as base64 of little-endian floats
  bool return_token_ids = false;  // vLLM's extension
};

// Reads a body with OpenAI's and vLLM's field names. The first wrong, unknown (with the nearest
// known name) or unsupported field is the error; so is a "model" that is not served (kNotFound).
Result<OpenAiRequest> parse_openai_request(OpenAiKind kind, const nlohmann::ordered_json& body,
                                           const OpenAiDefaults& defaults);

// Makes the prompt of a chat with the model's template. Nothing to do for other kinds.
Status render_openai_prompt(const Engine& engine, OpenAiRequest* request);

}  // namespace foretoken
