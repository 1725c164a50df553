#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/openai/openai_request.h"

namespace foretoken {

// A body of Ollama's API as the body of OpenAI's endpoint that means the same.
struct OllamaBody {
  OpenAiKind kind = OpenAiKind::kChat;
  nlohmann::ordered_json openai;
  std::string model;          // as the client named it, or empty
  bool is_empty = false;      // nothing to answer: the client loads the model, or gives it up
  bool keeps_model = true;    // false: it gives it up ("keep_alive": 0)
  bool drops_oldest = false;  // messages of a chat, where not all fit: unless "truncate" is false
  std::vector<std::string> warnings;
};

// Reads a body of /api/chat: streams unless it says otherwise. Images are errors. `max_model_len`:
// tokens of the context, for a warning where 'num_ctx' wants more.
Result<OllamaBody> read_ollama_chat(const nlohmann::ordered_json& body, int max_model_len);

// Reads a body of /api/generate, as a chat of 'system' and 'prompt' where `has_template`, neither
// "raw" nor a 'suffix' is said; otherwise as a completion. Templates and contexts of requests are
// errors.
Result<OllamaBody> read_ollama_generate(const nlohmann::ordered_json& body, bool has_template,
                                        int max_model_len);

// Reads a body of /api/embed ('input') or of the older /api/embeddings ('prompt').
Result<OllamaBody> read_ollama_embed(const nlohmann::ordered_json& body, int max_model_len);

// Whether a body of /api/chat has fields that OpenAI's chats have and Ollama's lack: such clients
// read OpenAI's answer, as llama-server gives it there.
bool is_openais_chat(const nlohmann::ordered_json& body);

// A name as Ollama's clients write it, without the ":latest" that they add.
std::string without_latest(const std::string& name);

}  // namespace foretoken
