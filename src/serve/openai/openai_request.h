#pragma once
#include <foretoken/engine.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/calls/chat_parser.h"
#include "serve/fields/json_fields.h"
#include "serve/openai/vector_form.h"

namespace foretoken {

enum class OpenAiKind { kChat, kCompletion, kEmbedding };

// What whoever starts a server or a batch says about its answers.
struct AnswerSettings {
  Pooling pooling = Pooling::kLast;  // of embeddings
  bool normalize = true;             // of embeddings: to length 1, where requests do not say
  SpeculativeParams speculative;     // of texts
  // vLLM's names, "auto": by the chat template, or "none" or empty: calls that nothing forces stay
  // text, and no reasoning is split off.
  std::string tool_parser;
  std::string reasoning_parser;
  // Tools without a parser for their calls are an error unless a choice forces the form.
  bool refuse_unparsed_tools = false;
  bool strict_schemas = false;       // a schema that cannot be enforced entirely is an error
  bool force_include_usage = false;  // in every stream
  bool tokens_as_token_ids = false;  // return_tokens_as_token_ids of requests that say nothing
  int stream_interval = 1;
  std::string template_arguments;    // JSON object of variables of templates, or empty
  double queue_timeout_seconds = 0;  // of requests that name none
  double timeout_seconds = 0;
  bool strict_fields = false;  // what is unknown or not followed is an error, not a warning
};

// Among the names of a model: requests may call it anything.
inline constexpr const char* kAnyModel = "*";

// Prompts, or texts to embed, of one body.
inline constexpr size_t kMaxPrompts = 4096;

// What a body leaves open: the settings, and what the engine knows.
struct OpenAiDefaults : AnswerSettings {
  SamplingParams sampling;
  int max_model_len = 0;                           // max_tokens of a chat that names none
  int embedding_size = 0;                          // 0: not known
  std::vector<EmbeddingPrompt> embedding_prompts;  // of the model
  std::string embedding_prompt;  // the name of the one of requests that name none; or empty
  int max_new_tokens = 0;        // max_tokens of every request, at most; 0: any number
  // Names that "model" may have; empty: any.
  std::vector<std::string> model_names;
  // Names of the engine's adapters, which "model" may have too, and the one of requests that name
  // no model ("": none). Null: there are none.
  std::function<std::vector<std::string>()> adapters;
  std::function<std::string()> default_adapter;
  bool adapters_come = false;  // while the server runs, so that any name may become one's
};

// The only way by which the engine's part of the defaults comes about in a program. The engine
// outlives them.
OpenAiDefaults make_openai_defaults(const Engine& engine, const AnswerSettings& settings,
                                    std::vector<std::string> model_names);

// The notes of a body's fields: sentences go to `warnings` unless `defaults` are strict.
FieldNotes field_notes(const OpenAiDefaults& defaults, std::vector<std::string>* warnings);

// A body of /v1/chat/completions, /v1/completions or /v1/embeddings.
struct OpenAiRequest {
  OpenAiKind kind = OpenAiKind::kChat;
  std::string model;
  std::vector<Request> requests;  // one for each prompt
  std::string messages_json;      // of a chat: the prompt of the only request
  std::string arguments_json;     // for the chat template
  bool drops_oldest = false;      // of the messages, where not all fit
  bool stream = false;
  bool include_usage = false;     // in a stream
  bool continuous_usage = false;  // in each chunk, too
  int stream_interval = 1;        // tokens of a choice that a chunk waits for, at least
  bool echo = false;              // the prompt comes before the text
  std::string echoed;             // of a chat: the text that its answer goes on with, told
  bool prompt_only = false;       // echo with max_tokens 0: only the prompt is wanted
  bool timings = false;           // answers and chunks have llama.cpp's timings
  std::optional<float> beam_length_penalty = {};  // the choices are found by beam search
  int dimensions = 0;                             // of embeddings; 0: all
  VectorForm vectors;                             // how embeddings are written
  bool return_token_ids = false;                  // vLLM's extension
  bool tokens_as_token_ids = false;               // log-probabilities name tokens "token_id:42"
  bool return_token_origins = false;     // who proposed each token: a drafter or the target
  bool include_reasoning = true;         // of a chat with a reasoning parser
  ChatParserOptions parser;              // of a chat
  bool strict_schemas = false;           // of the tools that a choice forces
  bool old_functions = false;            // "functions" were given: the answer has "function_call"
  bool names_length = false;             // the body says how many tokens the output may have
  bool form_is_response_format = false;  // the structured outputs are those of 'response_format'
  // Biases of all tokens of a text, which only a tokenizer can name.
  std::vector<std::pair<std::string, float>> text_biases;
  std::string request_id;  // the client's wish, or empty
  // What the answer will not follow of the body, a sentence each: the client and the log are told.
  std::vector<std::string> warnings;
  // Told of each search for tool calls in a text, or in a piece of a stream; may be empty.
  std::function<void(bool found)> on_tool_parse;
};

// Reads a body with OpenAI's and vLLM's field names. The first field of a wrong type or value, or
// that asks for what cannot be left out, is the error; so is a "model" that is not served
// (kNotFound). What is unknown (with the nearest known name) or has no effect is a warning.
Result<OpenAiRequest> parse_openai_request(OpenAiKind kind, const nlohmann::ordered_json& body,
                                           const OpenAiDefaults& defaults);

// kNotFound when `model`, unless empty or a placeholder, is none of `names`, unless there are none
// or kAnyModel is one of them.
Status check_model_name(const std::string& model, const std::vector<std::string>& names);

// The same for a model's name or an adapter's. Where there are adapters or may be some, "default",
// which is the name that PEFT gives one, is no placeholder.
Status check_model_name(const std::string& model, const OpenAiDefaults& defaults);

// Whether `model` is an adapter's name and none of the model itself.
bool names_adapter(const std::string& model, const OpenAiDefaults& defaults);

// The prompt of a chat by the model's template, which also settles the parsers of the answer and
// how tools are shown.
Status render_messages(const Engine& engine, OpenAiRequest* request, std::string* prompt);

// Renders the prompt of the only request; where `drops_oldest` holds and not all of the messages
// fit into the context, the oldest of them are left out, with a warning: instructions at the
// beginning, the last message, and the calls of results that are kept stay. What does not fit even
// so is rendered whole.
Status render_history(const Engine& engine, OpenAiRequest* request);

// What needs the model: the tokens of biased texts, and the prompt of a chat by its template with
// what depends on it: whether the text begins with reasoning, and the form that tools or the body
// force on it.
Status render_openai_prompt(const Engine& engine, OpenAiRequest* request);

}  // namespace foretoken
