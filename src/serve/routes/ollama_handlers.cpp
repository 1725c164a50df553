#include "serve/routes/ollama_handlers.h"

#include <utility>

#include "serve/fields/json_fields.h"
#include "serve/ollama/ollama_body.h"
#include "serve/ollama/ollama_format.h"
#include "serve/routes/llama_props.h"
#include "serve/routes/openai_handlers.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// The served name that a client means, ":latest" or not.
Result<std::string> served_name(const ServeContext& context, const std::string& name) {
  if (name.empty() || check_model_name(name, context.defaults).ok()) return name;
  const std::string bare = without_latest(name);
  FT_RETURN_IF_ERROR(check_model_name(bare, context.defaults));
  return bare;
}

// The request that `read` asks for, under the name that the server has.
Result<OpenAiRequest> request_of(const ServeContext& context, OllamaBody* read) {
  FT_ASSIGN_OR_RETURN(const std::string name, served_name(context, read->model));
  if (!name.empty()) read->openai["model"] = name;
  FT_ASSIGN_OR_RETURN(OpenAiRequest request, parse_text_request(context, read->kind, read->openai));
  request.drops_oldest = read->drops_oldest;
  request.warnings.insert(request.warnings.begin(), read->warnings.begin(), read->warnings.end());
  return request;
}

const std::string& shown_model(const ServeContext& context, const OllamaBody& read) {
  return read.model.empty() ? context.model_name() : read.model;
}

// Admits and runs a request, answered in the form that `make_format` makes of the answer's label.
Status run_ollama(
    ServeContext& context, const std::shared_ptr<http::Exchange>& exchange, const OllamaBody& read,
    OpenAiRequest request,
    const std::function<std::unique_ptr<AnswerFormat>(OpenAiRequest, OpenAiLabel)>& make_format) {
  watch_tool_calls(context, "chat_completions", &request);
  ServeResult<PreparedText> prepared = prepare_text(context, &request);
  if (!prepared.ok()) {
    respond_error(*exchange, ollama_error, prepared.error());
    return {};
  }
  std::string id = answer_id("ollama-", request.request_id, *exchange);
  OpenAiLabel label = make_label(context, id, request);
  label.model = shown_model(context, read);
  auto format = make_format(request, std::move(label));
  start_generation(context, exchange, request, std::move(prepared.value()), std::move(id),
                   std::move(format));
  return {};
}

Status run_text(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                OllamaAnswer answer, OllamaBody read) {
  if (read.is_empty) {
    FT_RETURN_IF_ERROR(served_name(context, read.model).status());
    respond_json(*exchange, 200,
                 ollama_load_answer(answer, shown_model(context, read), read.keeps_model));
    return {};
  }
  FT_ASSIGN_OR_RETURN(OpenAiRequest request, request_of(context, &read));
  return run_ollama(
      context, exchange, read, std::move(request), [answer](OpenAiRequest told, OpenAiLabel label) {
        return std::make_unique<OllamaFormat>(answer, std::move(told), std::move(label));
      });
}

Status run_embed(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                 const Body& body, bool single) {
  FT_ASSIGN_OR_RETURN(OllamaBody read, read_ollama_embed(body, context.defaults.max_model_len));
  if (read.is_empty) {
    FT_RETURN_IF_ERROR(served_name(context, read.model).status());
    json answer = {{"model", shown_model(context, read)}, {"embeddings", json::array()}};
    if (single) answer = {{"embedding", json::array()}};
    respond_json(*exchange, 200, answer);
    return {};
  }
  FT_ASSIGN_OR_RETURN(OpenAiRequest request, request_of(context, &read));
  return run_ollama(
      context, exchange, read, std::move(request), [single](OpenAiRequest told, OpenAiLabel label) {
        return std::make_unique<OllamaEmbedFormat>(single, std::move(told), std::move(label));
      });
}

// The name in a body about a model; older clients have it in 'name'.
Result<std::string> named_model(const ServeContext& context, const Body& body) {
  JsonFields fields(body, "");
  std::string name;
  fields.read("name", &name);
  fields.read("model", &name);
  FT_RETURN_IF_ERROR(fields.status());
  return served_name(context, name);
}

}  // namespace

Status handle_ollama_chat(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                          const Body& body) {
  const bool is_openais =
      is_openais_chat(body) && !exchange->request().header("user-agent").starts_with("ollama");
  if (is_openais) return handle_openai(context, exchange, OpenAiKind::kChat, body);
  FT_ASSIGN_OR_RETURN(OllamaBody read, read_ollama_chat(body, context.defaults.max_model_len));
  return run_text(context, exchange, OllamaAnswer::kChat, std::move(read));
}

Status handle_ollama_generate(ServeContext& context,
                              const std::shared_ptr<http::Exchange>& exchange, const Body& body) {
  const bool has_template = context.engine.chat_template(false) != nullptr;
  FT_ASSIGN_OR_RETURN(OllamaBody read,
                      read_ollama_generate(body, has_template, context.defaults.max_model_len));
  return run_text(context, exchange, OllamaAnswer::kGenerate, std::move(read));
}

Status handle_ollama_embed(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                           const Body& body) {
  return run_embed(context, exchange, body, false);
}

Status handle_ollama_embeddings(ServeContext& context,
                                const std::shared_ptr<http::Exchange>& exchange, const Body& body) {
  return run_embed(context, exchange, body, true);
}

Status handle_ollama_show(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                          const Body& body) {
  FT_RETURN_IF_ERROR(named_model(context, body).status());
  respond_json(*exchange, 200, api_show_body(context));
  return {};
}

Status handle_ollama_pull(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                          const Body& body) {
  FT_RETURN_IF_ERROR(named_model(context, body).status());
  respond_json(*exchange, 200, {{"status", "success"}});
  return {};
}

Status refuse_ollama_change(ServeContext&, const std::shared_ptr<http::Exchange>&, const Body&) {
  return unsupported(
      "this server has the model that it was started with; start another one for another model, "
      "with --served-model-name for other names");
}

json ollama_running_body(const ServeContext& context) {
  json models = json::array();
  for (const std::string& name : context.config.model_names) {
    json model = ollama_model(context, name);
    model["expires_at"] = "9999-12-31T23:59:59Z";
    model["size_vram"] = model["size"];
    model["context_length"] = context.engine.info().max_model_len;
    models.push_back(std::move(model));
  }
  return {{"models", std::move(models)}};
}

}  // namespace foretoken
