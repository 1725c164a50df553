#include "serve/routes/gateway_routes.h"

#include <foretoken/version.h>

#include <string_view>
#include <utility>

#include "serve/fields/json_fields.h"
#include "serve/llamacpp/infill_prompt.h"
#include "serve/openai/cohere_embed.h"
#include "serve/openai/fim_format.h"
#include "serve/openai/tokens_format.h"
#include "serve/routes/count_handlers.h"
#include "serve/routes/generate_handlers.h"
#include "serve/routes/info_handlers.h"
#include "serve/routes/llama_props.h"
#include "serve/routes/openai_handlers.h"
#include "serve/routes/score_handlers.h"

namespace foretoken {
namespace {

using http::Exchange;
using http::Route;
using ExchangePtr = std::shared_ptr<Exchange>;
using json = nlohmann::ordered_json;

Route body_route(ServeContext& context, const char* pattern, BodyHandler handle) {
  Route route;
  route.method = "POST";
  route.pattern = pattern;
  route.handler = on_pool(context, openai_error, std::move(handle));
  return route;
}

Route json_route(const char* pattern, std::function<Result<json>(const http::Request&)> find) {
  Route route;
  route.method = "GET";
  route.pattern = pattern;
  route.handler = [find = std::move(find)](const ExchangePtr& exchange) {
    const Result<json> found = find(exchange->request());
    if (found.ok()) return respond_json(*exchange, 200, found.value());
    respond_error(*exchange, openai_error, found.status());
  };
  return route;
}

// A deployment is called as the model, or an adapter, is; what the body says of it does not count.
Route deployment_route(ServeContext& context, const char* pattern, OpenAiKind kind) {
  return body_route(context, pattern,
                    [kind](ServeContext& all, const ExchangePtr& exchange, Body body) {
                      body["model"] = exchange->request().path_values.front();
                      return handle_openai(all, exchange, kind, body);
                    });
}

void add_azure_routes(ServeContext& context, const std::vector<Route>& routes,
                      std::vector<Route>* others) {
  others->push_back(
      deployment_route(context, "/openai/deployments/{id}/chat/completions", OpenAiKind::kChat));
  others->push_back(
      deployment_route(context, "/openai/deployments/{id}/completions", OpenAiKind::kCompletion));
  others->push_back(
      deployment_route(context, "/openai/deployments/{id}/embeddings", OpenAiKind::kEmbedding));
  for (const Route& route : routes) {
    if (!route.pattern.starts_with("/v1/")) continue;
    others->push_back(route);
    others->back().pattern = "/openai" + route.pattern;
    // Azure's older paths of these, which say a version behind them.
    const std::string older = route.pattern.substr(3);
    if (!older.starts_with("/responses") && older != "/models") continue;
    others->push_back(route);
    others->back().pattern = "/openai" + older;
  }
}

bool take_end(std::string_view end, std::string* text) {
  if (!text->ends_with(end)) return false;
  text->resize(text->size() - end.size());
  return true;
}

// NAME, NAME/ready, and both with /versions/1 behind the name.
Result<json> kserve_model(const ServeContext& context, std::string path) {
  const bool asks_ready = take_end("/ready", &path);
  take_end("/versions/1", &path);
  const Result<json> found = model_body(context, path);
  // Which ones there are is told to clients with a key alone.
  if (!found.ok()) return not_found("no model has this name; GET /v1/models has the names");
  const json& model = found.value();
  if (asks_ready) return json{{"name", model["id"]}, {"ready", true}};
  return json{{"name", model["id"]},
              {"versions", json::array({"1"})},
              {"platform", "foretoken"},
              {"inputs", json::array()},
              {"outputs", json::array()}};
}

// Whether requests to the model would be answered.
Status readiness(ServeContext& context) {
  if (context.gate.draining()) return resource_exhausted("the server is shutting down");
  return engine_health(context.engine);
}

// Of the Open Inference Protocol, for probes: no key is needed.
Route kserve_model_route(ServeContext& context) {
  Route route;
  route.method = "GET";
  route.pattern = "/v2/models/{id...}";
  route.needs_key = false;
  route.handler = [&context](const ExchangePtr& exchange) {
    const std::string& path = exchange->request().path_values.front();
    const Result<json> found = kserve_model(context, path);
    if (!found.ok()) return respond_error(*exchange, openai_error, found.status());
    const Status ready = path.ends_with("/ready") ? readiness(context) : Status();
    if (!ready.ok()) return respond_error(*exchange, openai_error, ServeError(503, ready));
    respond_json(*exchange, 200, found.value());
  };
  return route;
}

void add_kserve_routes(ServeContext& context, std::vector<Route>* others) {
  others->push_back(json_route("/v2", [](const http::Request&) -> Result<json> {
    return json{{"name", "foretoken"}, {"version", kVersion}, {"extensions", json::array()}};
  }));
  others->back().needs_key = false;
  others->push_back(kserve_model_route(context));
}

void add_load_routes(const ServeContext& context, std::vector<Route>* others) {
  others->push_back(json_route("/get_load", [&context](const http::Request&) -> Result<json> {
    return sglang_loads(context);
  }));
  others->push_back(json_route("/v1/loads", [&context](const http::Request&) -> Result<json> {
    json loads = sglang_loads(context);
    const size_t count = loads.size();
    return json{{"version", kVersion}, {"dp_rank_count", count}, {"loads", std::move(loads)}};
  }));
}

Status handle_cohere_embed(ServeContext& context, const ExchangePtr& exchange, const Body& body) {
  FT_ASSIGN_OR_RETURN(CohereEmbedRequest request, parse_cohere_embed(body, context.defaults));
  FT_RETURN_IF_ERROR(shorten_texts(context.engine, &request));
  return run_pooled(context, exchange, "embed-", request.embeddings, [&](OpenAiLabel label) {
    return std::make_unique<CohereEmbedFormat>(request, std::move(label));
  });
}

// Mistral's: without a 'suffix' the text goes on, and without 'max_tokens' as far as it fits.
Status handle_fim(ServeContext& context, const ExchangePtr& exchange, Body body) {
  const auto behind = body.find("suffix");
  const auto prompt = body.find("prompt");
  if (prompt == body.end() || !prompt->is_string()) {
    return invalid_argument("'prompt' must be the text before the gap");
  }
  const bool has_gap =
      behind != body.end() && behind->is_string() && !behind->get_ref<const std::string&>().empty();
  if (has_gap) FT_RETURN_IF_ERROR(find_infill_tokens(context.engine).status());
  if (!body.contains("max_tokens") || body["max_tokens"].is_null()) body["max_tokens"] = -1;
  body.erase("echo");
  if (body.contains("random_seed")) {
    body["seed"] = body["random_seed"];
    body.erase("random_seed");
  }
  FT_ASSIGN_OR_RETURN(OpenAiRequest request,
                      parse_text_request(context, OpenAiKind::kCompletion, body));
  ServeResult<PreparedText> prepared = prepare_text(context, &request);
  if (!prepared.ok()) {
    respond_error(*exchange, openai_error, prepared.error());
    return {};
  }
  std::string id = answer_id("fim-", request.request_id, *exchange);
  auto format = std::make_unique<FimFormat>(request, make_label(context, id, request));
  start_generation(context, exchange, request, std::move(prepared.value()), std::move(id),
                   std::move(format));
  return {};
}

Route render_route(ServeContext& context, const char* pattern, OpenAiKind kind) {
  return body_route(context, pattern,
                    [kind](ServeContext& all, const ExchangePtr& exchange, const Body& body) {
                      return handle_render(all, exchange, kind, body);
                    });
}

// vLLM's: ids in, ids out.
Status handle_tokens(ServeContext& context, const ExchangePtr& exchange, const Body& body) {
  FT_ASSIGN_OR_RETURN(const Body completion, completion_of_tokens(body));
  FT_ASSIGN_OR_RETURN(OpenAiRequest request,
                      parse_text_request(context, OpenAiKind::kCompletion, completion));
  ServeResult<PreparedText> prepared = prepare_text(context, &request);
  if (!prepared.ok()) {
    respond_error(*exchange, openai_error, prepared.error());
    return {};
  }
  std::string id = answer_id("", request.request_id, *exchange);
  auto format = std::make_unique<TokensFormat>(request, id);
  start_generation(context, exchange, request, std::move(prepared.value()), std::move(id),
                   std::move(format));
  return {};
}

json lmstudio_models(const ServeContext& context,
                     json (*entry)(const ServeContext&, const std::string&)) {
  const json all = models_body(context, false);
  json models = json::array();
  for (const json& model : all["data"]) models.push_back(entry(context, model["id"]));
  return models;
}

// A client that would load the model before it asks: it is.
Status answer_lmstudio_load(ServeContext& context, const ExchangePtr& exchange, const Body& body) {
  std::string model = context.model_name();
  JsonFields fields(body, "");
  fields.read("model", &model);
  FT_RETURN_IF_ERROR(fields.status());
  FT_RETURN_IF_ERROR(check_model_name(model, context.defaults));
  respond_json(
      *exchange, 200,
      {{"type", "llm"}, {"instance_id", model}, {"load_time_seconds", 0.0}, {"status", "loaded"}});
  return {};
}

// LM Studio's: OpenAI's bodies at other paths, and lists of models in which editors look for their
// size and for tools.
void add_lmstudio_routes(ServeContext& context, const std::vector<Route>& routes,
                         std::vector<Route>* others) {
  for (const Route& route : routes) {
    const std::string& pattern = route.pattern;
    if (pattern != "/v1/chat/completions" && pattern != "/v1/completions" &&
        pattern != "/v1/embeddings") {
      continue;
    }
    others->push_back(route);
    others->back().pattern = "/api/v0" + pattern.substr(3);
  }
  others->push_back(json_route("/api/v0/models", [&context](const http::Request&) -> Result<json> {
    return json{{"object", "list"}, {"data", lmstudio_models(context, lmstudio_model)}};
  }));
  others->push_back(json_route("/api/v1/models", [&context](const http::Request&) -> Result<json> {
    return json{{"models", lmstudio_models(context, lmstudio_key)}};
  }));
  others->push_back(body_route(context, "/api/v1/models/load", answer_lmstudio_load));
  others->push_back(
      json_route("/api/v0/models/{id...}", [&context](const http::Request& asked) -> Result<json> {
        FT_ASSIGN_OR_RETURN(const json found, model_body(context, asked.path_values.front()));
        return lmstudio_model(context, found["id"]);
      }));
}

void add_tgi_routes(ServeContext& context, std::vector<Route>* others) {
  const std::pair<const char*, TgiPath> paths[] = {{"/", TgiPath::kRoot},
                                                   {"/generate_stream", TgiPath::kStream}};
  for (const auto& [pattern, path] : paths) {
    others->push_back(body_route(context, pattern,
                                 [path](ServeContext& all, const ExchangePtr& exchange, Body body) {
                                   if (path == TgiPath::kRoot && is_tei_root(all, body)) {
                                     return handle_tei_root(all, exchange, body);
                                   }
                                   return handle_tgi(all, exchange, path, std::move(body));
                                 }));
  }
  others->push_back(json_route(
      "/info", [&context](const http::Request&) -> Result<json> { return tgi_info(context); }));
}

}  // namespace

std::vector<Route> gateway_routes(ServeContext& context, const std::vector<Route>& routes) {
  std::vector<Route> others = {
      body_route(context, "/v2/embed", handle_cohere_embed),
      body_route(context, "/v1/fim/completions", handle_fim),
      body_route(context, "/classify", handle_classify),
      body_route(context, "/v1/classify", handle_classify),
      body_route(context, "/inference/v1/generate", handle_tokens),
      render_route(context, "/v1/chat/completions/render", OpenAiKind::kChat),
      render_route(context, "/v1/completions/render", OpenAiKind::kCompletion)};
  add_azure_routes(context, routes, &others);
  add_kserve_routes(context, &others);
  add_load_routes(context, &others);
  add_tgi_routes(context, &others);
  add_lmstudio_routes(context, routes, &others);
  for (Route& route : tei_routes(context)) others.push_back(std::move(route));
  return others;
}

}  // namespace foretoken
