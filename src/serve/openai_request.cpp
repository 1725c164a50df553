#include "serve/openai_request.h"

#include <algorithm>

#include "serve/chat_messages.h"
#include "serve/field_names.h"
#include "serve/json_fields.h"
#include "serve/sampling_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// kNotFound when `model` is none of the names.
Status check_model(const std::string& model, const std::vector<std::string>& names) {
  const bool served = std::find(names.begin(), names.end(), model) != names.end();
  if (model.empty() || names.empty() || served) return {};
  return not_found("the model '" + model + "' is not served here; use '" + names.front() + "'" +
                   nearest_name_hint(model, names, ""));
}

// Fields of the OpenAI API and of vLLM that ask for something this build does not have.
void refuse_later_fields(JsonFields& fields) {
  fields.refuse_later({"audio",
                       "best_of",
                       "chat_template",
                       "dimensions",
                       "function_call",
                       "functions",
                       "guided_choice",
                       "guided_grammar",
                       "guided_json",
                       "guided_regex",
                       "kv_transfer_params",
                       "length_penalty",
                       "logits_processors",
                       "mm_processor_kwargs",
                       "modalities",
                       "prediction",
                       "prompt_embeds",
                       "reasoning_effort",
                       "structured_outputs",
                       "suffix",
                       "thinking_token_budget",
                       "use_beam_search",
                       "vllm_xargs",
                       "web_search_options"});
}

// Labels and hints that change no token.
void ignore_labels(JsonFields& fields) {
  fields.ignore({"user", "metadata", "store", "service_tier", "safety_identifier", "request_id",
                 "prompt_cache_key", "parallel_tool_calls"});
}

void read_response_format(JsonFields& fields) {
  const json* format = fields.raw("response_format");
  if (format == nullptr) return;
  const bool text = format->is_object() && format->value("type", json()) == "text";
  if (!text) fields.fail("'response_format' other than {\"type\": \"text\"} is not supported yet");
}

void read_stream(JsonFields& fields, OpenAiRequest* request) {
  fields.read("stream", &request->stream);
  const json* options = fields.raw("stream_options");
  if (options == nullptr) return;
  if (!options->is_object() || !request->stream) {
    return fields.fail("'stream_options' must be an object and needs \"stream\": true");
  }
  JsonFields inner(*options, "'stream_options'");
  inner.read("include_usage", &request->include_usage);
  inner.ignore({"continuous_usage_stats"});
  inner.refuse_unread();
  if (!inner.status().ok()) fields.fail(inner.status().message());
}

// What all kinds that make text share, after what is special about each.
void read_common(JsonFields& fields, OpenAiRequest* request, Request* shared) {
  read_sampling_fields(fields, &shared->sampling);
  fields.read("prompt_logprobs", &shared->sampling.prompt_logprobs);
  fields.read("echo", &request->echo);
  fields.read("return_token_ids", &request->return_token_ids);
  read_response_format(fields);
  read_stream(fields, request);
}

void read_end(JsonFields& fields, Request* shared) {
  read_request_fields(fields, shared);
  ignore_labels(fields);
  refuse_later_fields(fields);
  fields.refuse_unread();
}

// `tools`, `documents`, `chat_template_kwargs` and the flags of the template as one object.
void read_template_arguments(JsonFields& fields, OpenAiRequest* request) {
  json arguments = json::object();
  if (const json* more = fields.raw("chat_template_kwargs"); more != nullptr) {
    if (!more->is_object()) return fields.wrong_type("chat_template_kwargs", "an object", *more);
    arguments = *more;
  }
  for (const char* name : {"tools", "documents"}) {
    const json* list = fields.raw(name);
    if (list == nullptr) continue;
    if (!list->is_array()) return fields.wrong_type(name, "an array of objects", *list);
    if (!list->empty()) arguments[name] = *list;
  }
  for (const char* name : {"add_generation_prompt", "continue_final_message"}) {
    if (!fields.has(name)) continue;
    bool value = false;
    fields.read(name, &value);
    arguments[name] = value;
  }
  fields.ignore({"add_generation_prompt", "continue_final_message"});
  if (const json* choice = fields.raw("tool_choice"); choice != nullptr) {
    if (*choice == "none") arguments.erase("tools");
    if (*choice != "none" && *choice != "auto") {
      fields.fail("'tool_choice' other than \"none\" and \"auto\" is not supported yet");
    }
  }
  if (!arguments.empty()) request->arguments_json = arguments.dump();
}

void read_messages(JsonFields& fields, OpenAiRequest* request) {
  const json* messages = fields.raw("messages");
  if (messages == nullptr) {
    return fields.fail("'messages' is missing; give [{\"role\": \"user\", \"content\": ...}]");
  }
  const Result<json> normal = normalise_messages(*messages);
  if (!normal.ok()) return fields.fail(normal.status().message());
  request->messages_json = normal.value().dump();
}

void read_chat(JsonFields& fields, const OpenAiDefaults& defaults, OpenAiRequest* request) {
  Request shared;
  shared.sampling = defaults.sampling;
  shared.speculative = defaults.speculative;
  shared.add_special_tokens = false;
  // Without a limit of the model's own, the engine ends the text at the end of the context.
  if (shared.sampling.max_tokens == SamplingParams().max_tokens) {
    shared.sampling.max_tokens = std::max(defaults.max_model_len, 1);
  }
  read_messages(fields, request);
  read_template_arguments(fields, request);
  bool with_logprobs = false;
  int num_top = 0;
  fields.read("logprobs", &with_logprobs);
  fields.read("top_logprobs", &num_top);
  if (num_top != 0 && !with_logprobs) fields.fail("'top_logprobs' needs \"logprobs\": true");
  if (with_logprobs) shared.sampling.logprobs = num_top;
  read_common(fields, request, &shared);
  fields.read("max_completion_tokens", &shared.sampling.max_tokens);
  if (request->echo) fields.fail("'echo' is for /v1/completions; remove it");
  read_end(fields, &shared);
  request->requests.push_back(std::move(shared));
}

bool is_id_list(const json& value) {
  return value.is_array() && !value.empty() && value.front().is_number();
}

// A string, a list of strings, a list of ids or a list of lists of ids: one request for each.
void read_prompts(JsonFields& fields, const char* name, const Request& shared,
                  std::vector<Request>* requests) {
  const json* value = fields.raw(name);
  if (value == nullptr) return fields.fail("'" + std::string(name) + "' is missing");
  const bool several = value->is_array() && !is_id_list(*value);
  const json prompts = several ? *value : json::array({*value});
  if (prompts.empty()) return fields.fail("'" + std::string(name) + "' is an empty list");
  for (const json& prompt : prompts) {
    Request request = shared;
    if (prompt.is_string()) {
      request.prompt = prompt.get<std::string>();
    } else if (is_id_list(prompt)) {
      const json holder = {{name, prompt}};
      JsonFields ids(holder, "");
      ids.read(name, &request.prompt_token_ids);
      if (!ids.status().ok()) return fields.fail(ids.status().message());
    } else {
      return fields.wrong_type(name, "a string, a list of token ids, or a list of these", prompt);
    }
    requests->push_back(std::move(request));
  }
}

void read_completion(JsonFields& fields, const OpenAiDefaults& defaults, OpenAiRequest* request) {
  Request shared;
  shared.sampling = defaults.sampling;
  shared.speculative = defaults.speculative;
  fields.read("logprobs", &shared.sampling.logprobs);
  read_common(fields, request, &shared);
  SamplingParams& sampling = shared.sampling;
  request->prompt_only = request->echo && sampling.max_tokens == 0;
  if (request->prompt_only) sampling.max_tokens = 1;
  if (request->echo && sampling.logprobs && !sampling.prompt_logprobs) {
    sampling.prompt_logprobs = sampling.logprobs;
  }
  fields.ignore({"prompt"});
  read_end(fields, &shared);
  read_prompts(fields, "prompt", shared, &request->requests);
}

void read_encoding(JsonFields& fields, bool* base64) {
  std::string format = "float";
  fields.read("encoding_format", &format);
  if (format != "float" && format != "base64") {
    fields.fail("'encoding_format' must be \"float\" or \"base64\", not \"" + format + "\"");
  }
  *base64 = format == "base64";
}

void read_embedding(JsonFields& fields, const OpenAiDefaults& defaults, OpenAiRequest* request) {
  Request shared;
  shared.pooling = defaults.pooling;
  read_encoding(fields, &request->base64);
  fields.read("normalize", &shared.normalize);
  if (fields.has("messages")) {
    if (fields.has("input")) fields.fail("give 'input' or 'messages', not both");
    fields.ignore({"input"});
    shared.add_special_tokens = false;
    read_messages(fields, request);
    read_template_arguments(fields, request);
    read_end(fields, &shared);
    request->requests.push_back(std::move(shared));
    return;
  }
  fields.ignore({"input", "messages"});
  read_end(fields, &shared);
  read_prompts(fields, "input", shared, &request->requests);
}

}  // namespace

Result<OpenAiRequest> parse_openai_request(OpenAiKind kind, const json& body,
                                           const OpenAiDefaults& defaults) {
  if (!body.is_object()) return invalid_argument("the body must be a JSON object");
  OpenAiRequest request;
  request.kind = kind;
  JsonFields fields(body, "");
  fields.read("model", &request.model);
  if (kind == OpenAiKind::kChat) read_chat(fields, defaults, &request);
  if (kind == OpenAiKind::kCompletion) read_completion(fields, defaults, &request);
  if (kind == OpenAiKind::kEmbedding) read_embedding(fields, defaults, &request);
  FT_RETURN_IF_ERROR(fields.status());
  FT_RETURN_IF_ERROR(check_model(request.model, defaults.model_names));
  if (kind != OpenAiKind::kEmbedding) {
    FT_RETURN_IF_ERROR(check_sampling_ranges(request.requests.front().sampling));
  }
  return request;
}

Status render_openai_prompt(const Engine& engine, OpenAiRequest* request) {
  if (request->messages_json.empty()) return {};
  Request& only = request->requests.front();
  return engine.render_chat(request->messages_json, request->arguments_json, &only.prompt);
}

}  // namespace foretoken
