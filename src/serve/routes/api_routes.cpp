#include "serve/routes/api_routes.h"
#include "serve/flow/sleep_handlers.h"

#include <foretoken/version.h>

#include <algorithm>

#include "serve/llamacpp/infill_prompt.h"
#include "serve/ollama/ollama_format.h"
#include "serve/openapi/openapi.h"
#include "serve/routes/adapter_handlers.h"
#include "serve/routes/chat_batch.h"
#include "serve/routes/conversation_handlers.h"
#include "serve/routes/count_handlers.h"
#include "serve/routes/elsewhere_routes.h"
#include "serve/routes/gateway_routes.h"
#include "serve/routes/generate_handlers.h"
#include "serve/routes/info_handlers.h"
#include "serve/routes/llama_handlers.h"
#include "serve/routes/llama_props.h"
#include "serve/routes/message_handlers.h"
#include "serve/routes/ollama_handlers.h"
#include "serve/routes/openai_handlers.h"
#include "serve/routes/response_handlers.h"
#include "serve/routes/score_handlers.h"
#include "serve/routes/token_handlers.h"

namespace foretoken {
namespace {

using http::Exchange;
using http::Route;
using ExchangePtr = std::shared_ptr<Exchange>;
using json = nlohmann::ordered_json;

// Answers at once, on the connection's thread.
Route at_once(const char* method, const char* pattern, std::function<void(Exchange&)> answer) {
  Route route;
  route.method = method;
  route.pattern = pattern;
  route.handler = [answer = std::move(answer)](const ExchangePtr& exchange) { answer(*exchange); };
  return route;
}

Route get(const char* pattern, std::function<void(Exchange&)> answer) {
  return at_once("GET", pattern, std::move(answer));
}

// For those who watch the server: no key is needed.
Route open_get(const char* pattern, std::function<void(Exchange&)> answer) {
  Route route = get(pattern, std::move(answer));
  route.needs_key = false;
  return route;
}

Route post(ServeContext& context, const char* pattern, BodyHandler handle,
           ErrorText error_text = openai_error) {
  Route route;
  route.method = "POST";
  route.pattern = pattern;
  route.handler = on_pool(context, std::move(error_text), std::move(handle));
  return route;
}

Route openai_route(ServeContext& context, const char* pattern, OpenAiKind kind) {
  return post(context, pattern, [kind](ServeContext& all, const ExchangePtr& exchange, Body body) {
    return handle_openai(all, exchange, kind, body);
  });
}

void respond_result(Exchange& exchange, const Result<json>& result) {
  if (result.ok()) return respond_json(exchange, 200, result.value());
  respond_error(exchange, openai_error, result.status());
}

void respond_text(Exchange& exchange, int status, const char* text) {
  exchange.respond(status, "text/plain; charset=utf-8", text);
}

// Whether requests would be taken.
void answer_ready(const ServeContext& context, Exchange& exchange) {
  const bool draining = context.gate.draining();
  respond_text(exchange, draining ? 503 : 200, draining ? "shutting down\n" : "ready\n");
}

// Whether the process lives and its engine works; a server that drains is healthy still.
void answer_health(ServeContext& context, Exchange& exchange) {
  const Status status = engine_health(context.engine);
  if (status.ok()) return respond_text(exchange, 200, "");
  respond_error(exchange, openai_error, ServeError(503, status));
}

const std::string& first_path_value(const Exchange& exchange) {
  return exchange.request().path_values.front();
}

// Or clients may load some.
bool has_adapters(const ServeContext& context) {
  return context.config.runtime_adapters || !context.engine.adapters().empty();
}

// Every order of look-ups, and of look-ups before one other drafter, behind those of `list`.
void add_lists(const std::vector<DrafterInfo>& drafters, std::vector<std::string> list,
               std::vector<std::vector<std::string>>* lists) {
  for (const DrafterInfo& drafter : drafters) {
    if (std::ranges::count(list, drafter.name) > 0) continue;
    list.push_back(drafter.name);
    if (list.size() > 1) lists->push_back(list);
    if (drafter.looks_up) add_lists(drafters, list, lists);
    list.pop_back();
  }
}

OpenApiFacts openapi_facts(const ServeContext& context) {
  const EngineInfo& info = context.engine.info();
  OpenApiFacts facts;
  facts.tokenizer_info = context.config.tokenizer_info;
  facts.needs_key = context.config.needs_key;
  facts.strict_fields = context.defaults.strict_fields;
  facts.finds_tool_calls = !context.defaults.tool_parser.empty();
  facts.model_names = context.config.model_names;
  facts.any_model = std::ranges::count(context.config.model_aliases, kAnyModel) > 0;
  for (std::string& adapter : context.adapters.names()) {
    facts.model_names.push_back(std::move(adapter));
  }
  for (const DrafterInfo& drafter : info.drafters) {
    facts.drafters.push_back(drafter.name);
    facts.max_draft_tokens = std::max(facts.max_draft_tokens, drafter.num_speculative_tokens);
  }
  add_lists(info.drafters, {}, &facts.drafter_lists);
  facts.vocab_size = info.vocab_size;
  facts.max_model_len = info.max_model_len;
  facts.embedding_size = info.hidden_size;
  facts.fills_gaps = find_infill_tokens(context.engine).ok();
  facts.max_logprobs = info.max_logprobs;
  facts.has_adapters = has_adapters(context);
  facts.loads_adapters = context.config.runtime_adapters;
  return facts;
}

void add_watch_routes(ServeContext& context, std::vector<Route>* routes) {
  const auto health = [&context](Exchange& exchange) { answer_health(context, exchange); };
  routes->push_back(open_get("/health", health));
  routes->push_back(open_get("/ping", health));
  routes->push_back(at_once("POST", "/ping", health));
  routes->back().needs_key = false;
  routes->push_back(
      open_get("/ready", [&context](Exchange& exchange) { answer_ready(context, exchange); }));
  routes->push_back(open_get("/version", [](Exchange& exchange) {
    respond_json(exchange, 200, {{"version", kVersion}});
  }));
  routes->push_back(open_get("/load", [&context](Exchange& exchange) {
    respond_json(exchange, 200, load_body(context));
  }));
  routes->push_back(open_get("/openapi.json", [&context](Exchange& exchange) {
    respond_json(exchange, 200, openapi_document(openapi_facts(context)));
  }));
}

void add_model_routes(ServeContext& context, std::vector<Route>* routes) {
  routes->push_back(get("/v1/models", [&context](Exchange& exchange) {
    // Codex, which says its version, has other entries in "models", all from its service; with none
    // it takes what it knows itself.
    const bool is_codex = !exchange.request().query_value("client_version").empty();
    respond_json(exchange, 200, models_body(context, !is_codex));
  }));
  routes->push_back(get("/v1/models/{id...}", [&context](Exchange& exchange) {
    respond_result(exchange, model_body(context, first_path_value(exchange)));
  }));
  if (!context.config.tokenizer_info) return;
  routes->push_back(get("/tokenizer_info", [&context](Exchange& exchange) {
    const Status status = answer_tokenizer_info(context, exchange);
    if (!status.ok()) respond_error(exchange, openai_error, status);
  }));
}

void add_scoring_routes(ServeContext& context, std::vector<Route>* routes) {
  routes->push_back(post(context, "/v1/score", handle_score));
  routes->push_back(post(context, "/generative_scoring", handle_generative_scoring));
  routes->push_back(post(context, "/v1/rerank", handle_rerank));
  routes->push_back(post(context, "/pooling", handle_pooling));
}

void add_llama_routes(ServeContext& context, std::vector<Route>* routes) {
  routes->push_back(post(context, "/completion", handle_llama_completion));
  routes->push_back(post(context, "/infill", handle_infill));
  routes->push_back(post(context, "/embedding", handle_llama_embedding));
  routes->push_back(post(context, "/apply-template", handle_apply_template));
  routes->push_back(get("/props", [&context](Exchange& exchange) {
    respond_json(exchange, 200, props_body(context));
  }));
  routes->push_back(get("/slots", [&context](Exchange& exchange) {
    const EngineStats stats = context.engine.stats();
    if (exchange.request().query_value("fail_on_no_slot") == "1" && stats.num_free_slots == 0) {
      const Status full = resource_exhausted("no slot is free");
      return respond_error(exchange, openai_error, ServeError(503, full, 1));
    }
    respond_json(exchange, 200, slots_body(context));
  }));
}

void add_adapter_routes(ServeContext& context, std::vector<Route>* routes) {
  if (!has_adapters(context)) return;
  routes->push_back(get("/lora-adapters", [&context](Exchange& exchange) {
    respond_json(exchange, 200, context.adapters.list());
  }));
  routes->push_back(at_once("POST", "/lora-adapters", [&context](Exchange& exchange) {
    answer_choose_adapters(context, exchange);
  }));
  if (!context.config.runtime_adapters) return;
  routes->push_back(post(context, "/v1/load_lora_adapter", handle_load_adapter));
  routes->push_back(post(context, "/v1/unload_lora_adapter", handle_unload_adapter));
}

void add_cache_routes(ServeContext& context, std::vector<Route>* routes) {
  routes->push_back(at_once("POST", "/reset_prefix_cache", [&context](Exchange& exchange) {
    context.reset_prefix_cache();
    respond_text(exchange, 200, "");
  }));
  routes->push_back(get("/server_info", [&context](Exchange& exchange) {
    respond_json(exchange, 200, server_info_body(context));
  }));
  routes->push_back(get("/is_sleeping", [&context](Exchange& exchange) {
    respond_json(exchange, 200, {{"is_sleeping", context.engine.is_sleeping()}});
  }));
  const auto add = [&](const char* pattern, void (*answer)(ServeContext&, const ExchangePtr&)) {
    Route& route = routes->emplace_back();
    route.method = "POST";
    route.pattern = pattern;
    route.handler = [&context, answer](const ExchangePtr& exchange) { answer(context, exchange); };
  };
  add("/sleep", answer_sleep);
  add("/wake_up", answer_wake_up);
}

void add_response_routes(ServeContext& context, std::vector<Route>* routes) {
  routes->push_back(post(context, "/v1/responses", handle_responses));
  routes->push_back(post(context, "/v1/responses/input_tokens", handle_response_input_tokens));
  Route found = get("/v1/responses/{id}", {});
  found.handler = [&context](const ExchangePtr& exchange) {
    const std::string& id = first_path_value(*exchange);
    const std::string_view stream = exchange->request().query_value("stream");
    if (stream != "true" && stream != "True" && stream != "1") {
      return respond_result(*exchange, find_response(context, id));
    }
    const Status status = stream_response(context, exchange, id);
    if (!status.ok()) respond_error(*exchange, openai_error, status);
  };
  routes->push_back(std::move(found));
  routes->push_back(get("/v1/responses/{id}/input_items", [&context](Exchange& exchange) {
    respond_result(exchange, list_input_items(context, exchange.request()));
  }));
  routes->push_back(at_once("DELETE", "/v1/responses/{id}", [&context](Exchange& exchange) {
    respond_result(exchange, delete_response(context, first_path_value(exchange)));
  }));
  routes->push_back(at_once("POST", "/v1/responses/{id}/cancel", [&context](Exchange& exchange) {
    respond_result(exchange, cancel_response(context, first_path_value(exchange)));
  }));
}

void add_conversation_routes(ServeContext& context, std::vector<Route>* routes) {
  constexpr const char* kOne = "/v1/conversations/{id}";
  constexpr const char* kItems = "/v1/conversations/{id}/items";
  constexpr const char* kItem = "/v1/conversations/{id}/items/{item}";
  const auto answer = [&context](auto find) {
    return [&context, find](Exchange& exchange) {
      respond_result(exchange, find(context, exchange.request()));
    };
  };
  const auto by_id = [&context](auto find) {
    return [&context, find](Exchange& exchange) {
      respond_result(exchange, find(context, first_path_value(exchange)));
    };
  };
  routes->push_back(post(context, "/v1/conversations", handle_create_conversation));
  routes->push_back(get(kOne, by_id(find_conversation)));
  routes->push_back(post(context, kOne, handle_update_conversation));
  routes->push_back(at_once("DELETE", kOne, by_id(delete_conversation)));
  routes->push_back(post(context, kItems, handle_create_items));
  routes->push_back(get(kItems, answer(list_conversation_items)));
  routes->push_back(get(kItem, answer(find_conversation_item)));
  routes->push_back(at_once("DELETE", kItem, answer(delete_conversation_item)));
}

// POST /completions: llama.cpp's form, unless the body has OpenAI's length: clients whose address
// lacks "/v1". Any name of a model does, as for all of llama.cpp's paths.
Status handle_completions(ServeContext& context, const ExchangePtr& exchange, Body body) {
  if (!body.contains("max_tokens") || body.contains("n_predict")) {
    return handle_llama_completion(context, exchange, std::move(body));
  }
  std::vector<std::string> warnings;
  pass_over_model(context.defaults, &body, &warnings);
  return handle_openai(context, exchange, OpenAiKind::kCompletion, body);
}

// POST /embeddings: llama.cpp's form, unless the body says what OpenAI's clients say and
// llama.cpp's do not: those whose address lacks "/v1".
Status handle_embeddings(ServeContext& context, const ExchangePtr& exchange, Body body) {
  const bool is_openais =
      body.contains("encoding_format") || (body.contains("model") && body.contains("input"));
  if (!is_openais) return handle_llama_embedding(context, exchange, std::move(body));
  std::vector<std::string> warnings;
  pass_over_model(context.defaults, &body, &warnings);
  return handle_openai(context, exchange, OpenAiKind::kEmbedding, body);
}

struct Alias {
  const char* pattern;
  const char* known;  // of the table
};

constexpr Alias kAliases[] = {
    {"/livez", "/health"},
    {"/healthz", "/health"},
    {"/v1/health", "/health"},
    {"/health_generate", "/health"},
    {"/health/live", "/health"},
    {"/v1/health/live", "/health"},
    {"/v2/health/live", "/health"},
    {"/readyz", "/ready"},
    {"/health/ready", "/ready"},
    {"/v1/health/ready", "/ready"},
    {"/v2/health/ready", "/ready"},
    {"/flush_cache", "/reset_prefix_cache"},
    {"/get_server_info", "/server_info"},
    {"/v1/tokenize", "/tokenize"},
    {"/v1/detokenize", "/detokenize"},
    {"/v1/tokenizer_info", "/tokenizer_info"},
    {"/chat/completions", "/v1/chat/completions"},
    {"/models", "/v1/models"},
    {"/api/tags", "/v1/models"},
    {"/chat/completions/input_tokens", "/v1/chat/completions/input_tokens"},
    {"/responses/input_tokens", "/v1/responses/input_tokens"},
    {"/models/{id...}", "/v1/models/{id...}"},
    {"/responses", "/v1/responses"},
    {"/score", "/v1/score"},
    {"/rerank", "/v1/rerank"},
    {"/v2/rerank", "/v1/rerank"},
    {"/v1/ranking", "/v1/rerank"},
    {"/v1/retrieval/{organisation}/{model}/reranking", "/v1/rerank"},
    {"/reranking", "/v1/rerank"},
    {"/v1/reranking", "/v1/rerank"},
    {"/load_lora_adapter", "/v1/load_lora_adapter"},
    {"/unload_lora_adapter", "/v1/unload_lora_adapter"},
};

Route refused(const char* method, const char* pattern, const char* why) {
  return at_once(method, pattern, [why](Exchange& exchange) {
    respond_error(exchange, openai_error, unsupported(why));
  });
}

// Ollama's API. What makes and removes models there is told that this server has one.
void add_ollama_routes(ServeContext& context, std::vector<Route>* others) {
  const auto ollama = [&](const char* pattern, BodyHandler handle) {
    others->push_back(post(context, pattern, std::move(handle), ollama_error));
  };
  ollama("/api/chat", handle_ollama_chat);
  ollama("/api/generate", handle_ollama_generate);
  ollama("/api/embed", handle_ollama_embed);
  ollama("/api/embeddings", handle_ollama_embeddings);
  ollama("/api/show", handle_ollama_show);
  ollama("/api/pull", handle_ollama_pull);
  for (const char* path : {"/api/create", "/api/copy", "/api/push"}) {
    ollama(path, refuse_ollama_change);
  }
  others->push_back(post(context, "/api/delete", refuse_ollama_change, ollama_error));
  others->back().method = "DELETE";
  others->push_back(get("/api/ps", [&context](Exchange& exchange) {
    respond_json(exchange, 200, ollama_running_body(context));
  }));
  others->push_back(open_get("/api/version", [](Exchange& exchange) {
    respond_json(exchange, 200, {{"version", kOllamaVersion}});
  }));
}

// The paths and names that SageMaker has for what vLLM's of adapters do.
void add_sagemaker_routes(ServeContext& context, std::vector<Route>* others) {
  others->push_back(post(context, "/invocations", handle_invocation));
  if (!context.config.runtime_adapters) return;
  others->push_back(post(context, "/adapters", handle_load_sagemaker));
  others->push_back(at_once("DELETE", "/adapters/{id}", [&context](Exchange& exchange) {
    answer_unload_sagemaker(context, exchange);
  }));
}

// What servers without them answer where others serve adapters.
void add_missing_adapters(const std::vector<Route>& routes, std::vector<Route>* others) {
  constexpr const char* kNotAllowed =
      "adapters are not loaded or unloaded while this server runs; start it with "
      "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True, which lets every client do so";
  constexpr const char* kNone =
      "this server has no adapters; start it with --enable-lora --lora-modules NAME=FOLDER";
  const auto serves = [&](const std::string& pattern) {
    return std::ranges::any_of(routes,
                               [&](const Route& route) { return route.pattern == pattern; });
  };
  for (const char* name : {"load_lora_adapter", "unload_lora_adapter"}) {
    if (serves(std::string("/v1/") + name)) continue;
    for (const char* folder : {"/v1/", "/"}) {
      others->push_back(missing_route("POST", (std::string(folder) + name).c_str(), kNotAllowed));
    }
  }
  if (serves("/lora-adapters")) return;
  others->push_back(get("/lora-adapters",
                        [](Exchange& exchange) { respond_json(exchange, 200, json::array()); }));
  others->push_back(missing_route("POST", "/lora-adapters", kNone));
}

// What operators and trainers ask of engines that have caches of images and pauses.
void add_control_routes(ServeContext& context, std::vector<Route>* others) {
  others->push_back(post(context, "/abort_request", handle_sglang_abort));
  others->push_back(get("/flush_cache", [&context](Exchange& exchange) {
    context.reset_prefix_cache();
    respond_text(exchange, 200, "");
  }));
  for (const char* path : {"/reset_mm_cache", "/reset_encoder_cache"}) {
    others->push_back(
        at_once("POST", path, [](Exchange& exchange) { respond_text(exchange, 200, ""); }));
  }
  others->push_back(get("/is_paused", [](Exchange& exchange) {
    respond_json(exchange, 200, {{"is_paused", false}});
  }));
}

}  // namespace

std::vector<Route> other_routes(ServeContext& context, const std::vector<Route>& routes) {
  constexpr const char* kNoSlotFiles =
      "prompts are not saved to files here; what requests have in common is cached by itself";
  constexpr const char* kNoCompaction =
      "responses are not compacted here; send a shorter conversation, or one that was summed up";
  constexpr const char* kNoProps =
      "the properties of this server are set by the flags of 'foretoken serve'";
  const auto answer_model_info = [&context](Exchange& exchange) {
    respond_json(exchange, 200, sglang_model_info(context));
  };
  std::vector<Route> others = {refused("POST", "/props", kNoProps),
                               refused("POST", "/v1/responses/compact", kNoCompaction),
                               refused("POST", "/slots/{id}", kNoSlotFiles),
                               post(context, "/completions", handle_completions),
                               post(context, "/embeddings", handle_embeddings),
                               post(context, "/generate", handle_generate),
                               get("/get_model_info", answer_model_info),
                               get("/model_info", answer_model_info)};
  add_ollama_routes(context, &others);
  add_sagemaker_routes(context, &others);
  for (Route& other : gateway_routes(context, routes)) others.push_back(std::move(other));
  for (Route& other : elsewhere_routes()) others.push_back(std::move(other));
  if (!context.config.tokenizer_info) {
    others.push_back(missing_route("GET", "/tokenizer_info",
                                   "start the server with --enable-tokenizer-info-endpoint"));
  }
  add_missing_adapters(routes, &others);
  add_control_routes(context, &others);
  for (const Alias& alias : kAliases) {
    for (const Route& route : routes) {
      if (route.pattern != alias.known) continue;
      others.push_back(route);
      others.back().pattern = alias.pattern;
    }
  }
  return others;
}

std::vector<Route> api_routes(ServeContext& context) {
  std::vector<Route> routes = {
      openai_route(context, "/v1/chat/completions", OpenAiKind::kChat),
      post(context, "/v1/chat/completions/batch", handle_chat_batch),
      post(context, "/v1/chat/completions/input_tokens", handle_chat_input_tokens),
      openai_route(context, "/v1/completions", OpenAiKind::kCompletion),
      openai_route(context, "/v1/embeddings", OpenAiKind::kEmbedding),
      post(context, "/v1/messages", handle_messages, anthropic_error),
      post(context, "/v1/messages/count_tokens", handle_count_tokens, anthropic_error),
      post(context, "/tokenize", handle_tokenize),
      post(context, "/detokenize", handle_detokenize),
      post(context, "/abort_requests", handle_abort),
  };
  add_scoring_routes(context, &routes);
  add_llama_routes(context, &routes);
  add_adapter_routes(context, &routes);
  add_cache_routes(context, &routes);
  add_response_routes(context, &routes);
  add_conversation_routes(context, &routes);
  add_model_routes(context, &routes);
  add_watch_routes(context, &routes);
  return routes;
}

}  // namespace foretoken
