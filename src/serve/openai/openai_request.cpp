#include "serve/openai/openai_request.h"

#include <algorithm>
#include <utility>

#include "base/text/nearest_name.h"
#include "chat/tool_choice.h"
#include "compat/compat.h"
#include "config/sampling_ranges.h"
#include "serve/answer/chat_messages.h"
#include "serve/fields/beam_fields.h"
#include "serve/fields/json_fields.h"
#include "serve/fields/request_body.h"
#include "serve/fields/request_warnings.h"
#include "serve/fields/sampling_fields.h"
#include "serve/fields/schema_notes.h"
#include "serve/fields/structured_fields.h"
#include "serve/openai/embedding_prompt.h"
#include "serve/openai/foreign_chat.h"
#include "serve/openai/foreign_fields.h"
#include "serve/openai/served_adapters.h"
#include "serve/openai/stream_options.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// In vLLM they name Python code of the server.
void refuse_processors(JsonFields& fields) {
  const json* processors = fields.raw("logits_processors");
  if (processors == nullptr || processors->empty()) return;
  fields.fail(
      "'logits_processors' names Python code, which this server does not run; use 'logit_bias', "
      "'bad_words' or 'allowed_token_ids', or the Python package foretoken, whose SamplingParams "
      "take logits_processors");
}

// Fields of the OpenAI API and of vLLM that ask for something this build does not have.
void refuse_later_fields(JsonFields& fields) {
  // Clients send the defaults of what they do not use.
  const std::pair<const char*, json> defaults[] = {{"best_of", 1}};
  for (const auto& [name, harmless] : defaults) {
    if (fields.has(name) && *fields.raw(name) != harmless) fields.pass_over({name});
    fields.ignore({name});
  }
  refuse_processors(fields);
  // Without these the answer would be to another question.
  fields.refuse(
      {{"suffix", "give one text as 'prompt', and serve a model that has tokens for gaps"},
       {"chat_template", "start the server with --chat-template FILE"},
       {"prompt_embeds", "give texts or token ids"},
       {"logprob_token_ids", "ask for the likeliest tokens by their number"}});
  fields.pass_over_vllms();
  fields.pass_over({"audio", "repetition_detection", "thinking_token_budget", "return_prompt_text",
                    "return_token_offsets", "return_weight_versions", "routed_experts_prompt_start",
                    "padding", "web_search_options"});
}

// Labels and hints that change no token.
void ignore_labels(JsonFields& fields) {
  fields.ignore({"user", "metadata", "store", "service_tier", "safety_identifier", "request_id",
                 "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "session_id",
                 "verbosity"});
}

// What all kinds that make text share, after what is special about each.
void read_common(JsonFields& fields, const OpenAiDefaults& defaults, OpenAiRequest* request,
                 Request* shared) {
  read_sampling_fields(fields, &shared->sampling);
  read_prediction(fields, &shared->prediction);
  read_logprob_count(fields, "prompt_logprobs", &shared->sampling.prompt_logprobs);
  request->beam_length_penalty = read_beams(fields, &shared->sampling);
  fields.read("echo", &request->echo);
  fields.read("return_token_ids", &request->return_token_ids);
  request->tokens_as_token_ids = defaults.tokens_as_token_ids;
  fields.read("return_tokens_as_token_ids", &request->tokens_as_token_ids);
  fields.read("return_token_origins", &request->return_token_origins);
  fields.read("timings_per_token", &request->timings);
  fields.refuse({{"dimensions", "it is one of /v1/embeddings; remove it"}});
  fields.read("request_id", &request->request_id);
  request->strict_schemas = defaults.strict_schemas;
  read_structured_outputs(fields, defaults.strict_schemas, &shared->sampling.structured_outputs);
  shared->queue_timeout_seconds = defaults.queue_timeout_seconds;
  shared->timeout_seconds = defaults.timeout_seconds;
  fields.read("queue_timeout_seconds", &shared->queue_timeout_seconds);
  fields.read("timeout_seconds", &shared->timeout_seconds);
  if (const Status status = check_times(*shared); !status.ok()) fields.fail(status.message());
  read_stream(fields, defaults, request);
}

constexpr size_t kMaxStops = 256;

// Each would cost every token something.
void check_lists(JsonFields& fields, const SamplingParams& sampling) {
  for (const auto& [name, size] : {std::pair{"stop", sampling.stop.size()},
                                   std::pair{"bad_words", sampling.bad_words.size()}}) {
    if (size <= kMaxStops) continue;
    fields.fail("'" + std::string(name) + "' may hold at most " + std::to_string(kMaxStops) +
                " texts, not " + std::to_string(size));
  }
}

void read_end(JsonFields& fields, Request* shared) {
  read_request_fields(fields, shared);
  check_lists(fields, shared->sampling);
  ignore_labels(fields);
  refuse_later_fields(fields);
  fields.check_unread();
}

// As templates know it; "none" turns thinking off, any other on, also where a template leaves it
// out unless it is asked for.
void read_effort(JsonFields& fields, json* arguments) {
  if (!fields.has("reasoning_effort")) return fields.ignore({"reasoning_effort"});
  std::string effort;
  fields.read("reasoning_effort", &effort);
  if (effort.empty()) return;
  arguments->emplace("reasoning_effort", effort);
  switch_thinking(effort != "none", arguments);
}

// Tools as the parser of the text and the template see them.
void read_tools(JsonFields& fields, const OpenAiDefaults& defaults, OpenAiRequest* request) {
  ChatParserOptions& parser = request->parser;
  parser.tool_parser = defaults.tool_parser;
  parser.reasoning_parser = defaults.reasoning_parser;
  fields.read("include_reasoning", &request->include_reasoning);
  // llama.cpp's: "none" leaves reasoning in the text.
  std::string reasoning_format;
  fields.read("reasoning_format", &reasoning_format);
  if (reasoning_format == "none") parser.reasoning_parser.clear();
  fields.read("parallel_tool_calls", &parser.parallel_tool_calls);
  if (request->old_functions) parser.parallel_tool_calls = false;
  const json* tools = fields.raw("tools");
  const json* choice = fields.raw("tool_choice");
  if (tools != nullptr) parser.tools = *tools;
  const Result<std::string> read =
      read_tool_choice(choice == nullptr ? json() : *choice, parser.tools);
  if (!read.ok()) return fields.fail(read.status().message());
  parser.tool_choice = read.value();
  if (!defaults.refuse_unparsed_tools) return;
  const Status fits = compat({.model_calls_tools = parser.tool_choice == "auto",
                              .finds_tool_calls = !parser.tool_parser.empty()});
  if (!fits.ok()) fields.fail(fits.message());
}

// `tools`, `documents`, `chat_template_kwargs` and the flags of the template as one object.
void read_template_arguments(JsonFields& fields, const OpenAiDefaults& defaults,
                             OpenAiRequest* request) {
  json arguments = json::object();
  if (const json* more = fields.raw("chat_template_kwargs"); more != nullptr) {
    if (!more->is_object()) return fields.wrong_type("chat_template_kwargs", "an object", *more);
    arguments = *more;
  }
  for (const char* name : {"tools", "documents"}) {
    const json* list = fields.raw(name);
    if (list == nullptr) continue;
    const bool objects =
        list->is_array() &&
        std::all_of(list->begin(), list->end(), [](const json& item) { return item.is_object(); });
    if (!objects) return fields.wrong_type(name, "an array of objects", *list);
    const Status tools = name == std::string("tools") ? check_tools(*list) : Status();
    if (!tools.ok()) return fields.fail(tools.message());
    if (!list->empty()) arguments[name] = *list;
  }
  if (request->parser.tool_choice == "none") arguments.erase("tools");
  for (const char* name : {"add_generation_prompt", "continue_final_message"}) {
    if (!fields.has(name)) continue;
    bool value = false;
    fields.read(name, &value);
    arguments[name] = value;
  }
  fields.ignore({"add_generation_prompt", "continue_final_message"});
  read_effort(fields, &arguments);
  if (!defaults.template_arguments.empty()) {
    json others = json::parse(defaults.template_arguments);
    others.update(arguments);
    arguments = std::move(others);
  }
  if (!arguments.empty()) request->arguments_json = arguments.dump();
}

void read_messages(JsonFields& fields, OpenAiRequest* request) {
  const json* messages = fields.raw("messages");
  if (messages == nullptr) {
    return fields.fail("'messages' is missing; give [{\"role\": \"user\", \"content\": ...}]");
  }
  std::set<std::string> unread;
  const Result<json> normal = normalise_messages(*messages, &unread);
  if (!normal.ok()) return fields.fail(normal.status().message());
  for (const std::string& type : unread) {
    fields.warn("parts of type '" + shown_name(type) +
                "' of results cannot be read here and were left out");
  }
  request->messages_json = normal.value().dump();
}

void read_modalities(JsonFields& fields) {
  std::vector<std::string> modalities;
  fields.read("modalities", &modalities);
  for (const std::string& modality : modalities) {
    if (modality != "text") fields.fail("'modalities' must be [\"text\"]; others are not made");
  }
}

// As in vLLM, a chat repeats the message that its answer goes on with, and no more of the prompt.
void read_echo(JsonFields& fields, OpenAiRequest* request) {
  if (!std::exchange(request->echo, false)) return;
  const json messages = json::parse(request->messages_json, nullptr, false);
  if (!messages.is_array() || messages.empty()) return;
  const json& last = messages.back();
  const json content = last.value("content", json());
  if (last.value("role", json()) != "assistant") {
    return fields.warn("'echo' has no effect in a chat whose last message is not the assistant's");
  }
  if (content.is_string()) request->echoed = content.get<std::string>();
  for (const json& part : content.is_array() ? content : json::array()) {
    if (!part.is_object()) continue;
    request->echoed += (request->echoed.empty() ? "" : "\n") + part.value("text", std::string());
  }
}

void read_chat(JsonFields& fields, const OpenAiDefaults& defaults, OpenAiRequest* request) {
  Request shared;
  shared.sampling = defaults.sampling;
  shared.speculative = defaults.speculative;
  shared.add_special_tokens = false;
  // The engine ends the text at the end of the context.
  shared.sampling.max_tokens = std::max(defaults.max_model_len, 1);
  read_messages(fields, request);
  read_tools(fields, defaults, request);
  read_template_arguments(fields, defaults, request);
  read_modalities(fields);
  bool with_logprobs = false;
  int num_top = 0;
  fields.read("logprobs", &with_logprobs);
  fields.read("top_logprobs", &num_top);
  if (num_top != 0 && !with_logprobs) fields.fail("'top_logprobs' needs \"logprobs\": true");
  if (with_logprobs) shared.sampling.logprobs = num_top;
  read_common(fields, defaults, request, &shared);
  if (shared.sampling.max_tokens < 1) fields.fail("'max_tokens' must be at least 1");
  fields.read("max_completion_tokens", &shared.sampling.max_tokens);
  if (shared.sampling.max_tokens < 1) fields.fail("'max_completion_tokens' must be at least 1");
  read_echo(fields, request);
  read_end(fields, &shared);
  request->requests.push_back(std::move(shared));
}

bool is_id_list(const json& value) {
  return value.is_array() && !value.empty() && value.front().is_number();
}

// A string, a list of strings, a list of ids or a list of lists of ids: one request for each.
void read_prompts(JsonFields& fields, const json& body, const char* name, const Request& shared,
                  std::vector<Request>* requests) {
  const json* value = fields.raw(name);
  if (value == nullptr) return fields.fail("'" + std::string(name) + "' is missing");
  const bool several = value->is_array() && !is_id_list(*value);
  const json prompts = several ? *value : json::array({*value});
  if (prompts.empty()) return fields.fail("'" + std::string(name) + "' is an empty list");
  if (prompts.size() > kMaxPrompts) {
    return fields.fail("'" + std::string(name) + "' may hold at most " +
                       std::to_string(kMaxPrompts) + " prompts");
  }
  if (const Status status = check_copies(body, name, prompts.size()); !status.ok()) {
    return fields.fail(status.message());
  }
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

void read_completion(JsonFields& fields, const json& body, const OpenAiDefaults& defaults,
                     OpenAiRequest* request) {
  Request shared;
  shared.sampling = defaults.sampling;
  shared.sampling.max_tokens = SamplingParams().max_tokens;
  shared.speculative = defaults.speculative;
  read_logprob_count(fields, "logprobs", &shared.sampling.logprobs);
  read_common(fields, defaults, request, &shared);
  SamplingParams& sampling = shared.sampling;
  request->prompt_only = request->echo && sampling.max_tokens == 0;
  if (request->prompt_only) sampling.max_tokens = 1;
  if (request->echo && sampling.logprobs && !sampling.prompt_logprobs) {
    sampling.prompt_logprobs = sampling.logprobs;
  }
  fields.ignore({"prompt"});
  read_end(fields, &shared);
  read_prompts(fields, body, "prompt", shared, &request->requests);
}

void read_embedding(JsonFields& fields, const json& body, const OpenAiDefaults& defaults,
                    OpenAiRequest* request) {
  Request shared;
  shared.pooling = defaults.pooling;
  shared.normalize = defaults.normalize;
  request->vectors = read_vector_form(fields);
  fields.read("dimensions", &request->dimensions);
  if (fields.has("dimensions") && request->dimensions < 1) {
    fields.fail("'dimensions' must be at least 1");
  }
  if (defaults.embedding_size > 0 && request->dimensions > defaults.embedding_size) {
    fields.fail("'dimensions' must be at most " + std::to_string(defaults.embedding_size) +
                ", the length of this model's vectors, not " + std::to_string(request->dimensions));
  }
  fields.read("request_id", &request->request_id);
  fields.read("normalize", &shared.normalize);
  fields.read("use_activation", &shared.normalize);  // as vLLM calls it
  if (fields.has("messages")) {
    if (fields.has("input")) fields.fail("give 'input' or 'messages', not both");
    fields.ignore({"input"});
    fields.pass_over({"prompt_name", "input_type"});
    shared.add_special_tokens = false;
    read_messages(fields, request);
    read_template_arguments(fields, defaults, request);
    read_end(fields, &shared);
    request->requests.push_back(std::move(shared));
    return;
  }
  fields.ignore({"input", "messages"});
  const std::string prompt = read_embedding_prompt(fields, defaults);
  read_template_arguments(fields, defaults, request);
  read_end(fields, &shared);
  read_prompts(fields, body, "input", shared, &request->requests);
  put_before_texts(fields, prompt, &request->requests);
}

// Cuts the lengths of outputs to what the model's makers or its server allow, as vLLM does.
void limit_length(const OpenAiDefaults& defaults, OpenAiRequest* request) {
  const int limit = defaults.max_new_tokens;
  if (limit < 1) return;
  const int wanted = request->requests.front().sampling.max_tokens;
  for (Request& one : request->requests) {
    one.sampling.max_tokens = std::min(one.sampling.max_tokens, limit);
  }
  if (wanted <= limit || !request->names_length) return;
  add_warning("'max_tokens' " + std::to_string(wanted) + " is more than the " +
                  std::to_string(limit) +
                  " of this server's generation config (max_new_tokens), which holds",
              &request->warnings);
}

// Tokens would show the reasoning that is not to be told.
void hide_tokens_of_reasoning(OpenAiRequest* request) {
  SamplingParams& sampling = request->requests.front().sampling;
  const bool asked =
      sampling.logprobs || request->return_token_ids || request->return_token_origins;
  if (request->include_reasoning || request->parser.reasoning_parser.empty() || !asked) return;
  sampling.logprobs.reset();
  request->return_token_ids = request->return_token_origins = false;
  add_warning(
      "'logprobs', 'return_token_ids' and 'return_token_origins' would show the reasoning "
      "that 'include_reasoning' leaves out; they were passed over",
      &request->warnings);
}

// What of the schemas will not be enforced.
Status note_left_out(const json& body, OpenAiRequest* request) {
  const std::optional<StructuredOutputs>& form =
      request->requests.front().sampling.structured_outputs;
  const bool by_format = body.contains("response_format") && body["response_format"].is_object();
  request->form_is_response_format = form && by_format;
  if (form) {
    FT_RETURN_IF_ERROR(note_schemas(*form, by_format ? "'response_format'" : "'structured_outputs'",
                                    &request->warnings));
  }
  if (request->strict_schemas) return {};
  return note_tool_schemas(request->parser.tools, request->parser.tool_choice, &request->warnings);
}

}  // namespace

OpenAiDefaults make_openai_defaults(const Engine& engine, const AnswerSettings& settings,
                                    std::vector<std::string> model_names) {
  const EngineInfo& info = engine.info();
  OpenAiDefaults defaults;
  static_cast<AnswerSettings&>(defaults) = settings;
  defaults.sampling = engine.default_sampling_params();
  defaults.max_model_len = info.max_model_len;
  defaults.embedding_size = info.hidden_size;
  defaults.embedding_prompts = info.embedding_prompts;
  defaults.embedding_prompt = info.embedding_prompt;
  defaults.max_new_tokens = info.max_new_tokens;
  defaults.model_names = std::move(model_names);
  defaults.adapters = [&engine] {
    std::vector<std::string> names;
    for (AdapterInfo& adapter : engine.adapters()) names.push_back(std::move(adapter.name));
    return names;
  };
  return defaults;
}

FieldNotes field_notes(const OpenAiDefaults& defaults, std::vector<std::string>* warnings) {
  return {defaults.strict_fields ? nullptr : warnings};
}

Result<OpenAiRequest> parse_openai_request(OpenAiKind kind, const json& body,
                                           const OpenAiDefaults& defaults) {
  if (!body.is_object()) return invalid_argument("the body must be a JSON object");
  if (kind == OpenAiKind::kEmbedding) {
    const std::optional<json> told = as_openais_embedding(body);
    if (told) return parse_openai_request(kind, *told, defaults);
  }
  OpenAiRequest request;
  request.kind = kind;
  JsonFields fields(body, "", field_notes(defaults, &request.warnings));
  fields.read("model", &request.model);
  const json* lora = fields.raw("lora");
  if (kind != OpenAiKind::kEmbedding) {
    const bool chat = kind == OpenAiKind::kChat;
    ForeignWishes wishes = read_foreign_fields(fields, chat, defaults.max_model_len);
    request.text_biases = std::move(wishes.text_biases);
    request.names_length =
        !wishes.goes_to_the_end &&
        (fields.has("max_tokens") || (chat && fields.has("max_completion_tokens")));
    request.old_functions = chat && has_old_functions(body);
  }
  if (kind == OpenAiKind::kChat) read_chat(fields, defaults, &request);
  if (kind == OpenAiKind::kCompletion) read_completion(fields, body, defaults, &request);
  if (kind == OpenAiKind::kEmbedding) read_embedding(fields, body, defaults, &request);
  FT_RETURN_IF_ERROR(fields.status());
  FT_ASSIGN_OR_RETURN(const std::string adapter, asked_adapter(request.model, lora, defaults));
  for (Request& one : request.requests) one.adapter = adapter;
  if (kind != OpenAiKind::kEmbedding) {
    FT_RETURN_IF_ERROR(check_sampling_ranges(request.requests.front().sampling));
    limit_length(defaults, &request);
    if (kind == OpenAiKind::kChat) hide_tokens_of_reasoning(&request);
    FT_RETURN_IF_ERROR(note_left_out(body, &request));
  }
  return request;
}

}  // namespace foretoken
