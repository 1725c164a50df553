#include "serve/routes/llama_handlers.h"

#include <algorithm>

#include "serve/fields/json_fields.h"
#include "serve/fields/request_body.h"
#include "serve/fields/request_warnings.h"
#include "serve/llamacpp/infill_prompt.h"
#include "serve/llamacpp/llama_format.h"
#include "serve/llamacpp/llama_request.h"
#include "serve/openai/score_format.h"
#include "serve/routes/openai_handlers.h"
#include "serve/routes/score_handlers.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// Texts and ids in one list, of ids at least so many.
bool is_one_prompt(const json& prompt, int least_ids) {
  if (!prompt.is_array()) return false;
  const auto count = [&prompt](auto fits) {
    return std::count_if(prompt.begin(), prompt.end(), fits);
  };
  const auto texts = count([](const json& item) { return item.is_string(); });
  const auto ids = count([](const json& item) { return JsonFields::is_count(item); });
  return texts > 0 && ids >= least_ids && static_cast<size_t>(texts + ids) == prompt.size();
}

// A prompt of texts and ids in one list becomes ids; special tokens stand before a first text.
Status join_parts(const Engine& engine, json* prompt, int least_ids) {
  if (!is_one_prompt(*prompt, least_ids)) return {};
  json ids = json::array();
  for (const json& item : *prompt) {
    if (!item.is_string()) {
      ids.push_back(item);
      continue;
    }
    std::vector<int32_t> piece;
    FT_RETURN_IF_ERROR(engine.encode(item.get<std::string>(), ids.empty(), &piece));
    for (const int32_t id : piece) ids.push_back(id);
  }
  *prompt = std::move(ids);
  return {};
}

// {"prompt_string", "multimodal_data"}: a text, to which this server can show no images.
Status take_prompt_string(json* prompt) {
  if (!prompt->is_object() || !prompt->contains("prompt_string")) return {};
  if (!prompt->value("multimodal_data", json()).empty()) {
    return invalid_argument(
        "'prompt': images and sounds in 'multimodal_data' are not supported; give text");
  }
  const json text = (*prompt)["prompt_string"];
  *prompt = text;
  return {};
}

// As llama-server: what /completion puts before a text itself is no part of a rendered one.
Status leave_out_bos(const Engine& engine, std::string* prompt) {
  const std::string& bos = engine.info().bos_token;
  if (bos.empty() || !prompt->starts_with(bos)) return {};
  std::vector<int32_t> with;
  std::vector<int32_t> alone;
  FT_RETURN_IF_ERROR(engine.encode(*prompt, true, &with));
  FT_RETURN_IF_ERROR(engine.encode(*prompt, false, &alone));
  if (with.size() > alone.size() && with[1] == with[0]) prompt->erase(0, bos.size());
  return {};
}

Status read_llama_prompt(const Engine& engine, Body* body) {
  const auto prompt = body->find("prompt");
  if (prompt == body->end()) return {};
  FT_RETURN_IF_ERROR(take_prompt_string(&*prompt));
  // A list of texts alone holds several prompts, but one that stands inside of a list is one.
  FT_RETURN_IF_ERROR(join_parts(engine, &*prompt, 1));
  if (!prompt->is_array()) return {};
  for (json& one : *prompt) {
    FT_RETURN_IF_ERROR(take_prompt_string(&one));
    FT_RETURN_IF_ERROR(join_parts(engine, &one, 0));
  }
  return {};
}

Status run_completion(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                      LlamaRequest request) {
  ServeResult<PreparedText> prepared = prepare_text(context, &request.text);
  if (!prepared.ok()) {
    respond_error(*exchange, openai_error, prepared.error());
    return {};
  }
  PromptTexts texts;
  for (const Request& one : request.text.requests) {
    std::string& text = texts.emplace_back(one.prompt);
    if (text.empty()) {
      FT_RETURN_IF_ERROR(context.engine.decode(one.prompt_token_ids, false, &text));
    }
  }
  std::string id = answer_id("cmpl-", request.text.request_id, *exchange);
  OpenAiLabel label = make_label(context, id, request.text);
  const OpenAiRequest& text = request.text;
  auto format = std::make_unique<LlamaFormat>(request, std::move(texts), std::move(label));
  start_generation(context, exchange, text, std::move(prepared.value()), std::move(id),
                   std::move(format));
  return {};
}

Status read_extra(JsonFields& fields, InfillParts* parts) {
  const json* extra = fields.raw("input_extra");
  if (extra == nullptr) return {};
  constexpr const char* kWanted = "a list of {\"filename\", \"text\"}";
  if (!extra->is_array()) fields.wrong_type("input_extra", kWanted, *extra);
  FT_RETURN_IF_ERROR(fields.status());
  for (const json& file : *extra) {
    const bool fits = file.is_object() && file.contains("text") && file["text"].is_string();
    if (!fits) fields.wrong_type("input_extra", kWanted, file);
    FT_RETURN_IF_ERROR(fields.status());
    const json name = file.value("filename", json("tmp"));
    parts->extra.emplace_back(name.is_string() ? name.get<std::string>() : "tmp",
                              file["text"].get<std::string>());
  }
  return {};
}

Status read_infill(const Body& body, InfillParts* parts) {
  JsonFields fields(body, "");
  for (const char* name : {"input_prefix", "input_suffix"}) {
    if (!fields.has(name)) fields.fail("'" + std::string(name) + "' is missing");
  }
  fields.read("input_prefix", &parts->prefix);
  fields.read("input_suffix", &parts->suffix);
  fields.read("prompt", &parts->prompt);
  FT_RETURN_IF_ERROR(fields.status());
  return read_extra(fields, parts);
}

// The form that /embedding has.
class LlamaEmbeddingFormat final : public PooledFormat {
 public:
  LlamaEmbeddingFormat(OpenAiRequest request, OpenAiLabel label)
      : PooledFormat(std::move(label)), request_(std::move(request)) {}

  std::string whole(const std::vector<const OutputSum*>& sums) override {
    json body = json::array();
    for (const OutputSum* sum : sums) {
      json value = embedding_value(request_, sum->choices().front().embedding);
      json rows = json::array();
      rows.push_back(std::move(value));
      body.push_back({{"index", body.size()}, {"embedding", std::move(rows)}});
    }
    return json_text(body);
  }

 private:
  const OpenAiRequest request_;
};

// llama.cpp's names as those of /v1/embeddings.
Status rename_embedding_fields(Body* body) {
  JsonFields fields(*body, "");
  int norm = 2;
  fields.read("embd_normalize", &norm);
  FT_RETURN_IF_ERROR(fields.status());
  if (norm != 2 && norm != -1) {
    return invalid_argument("'embd_normalize' may be 2 (to length 1) or -1 (not at all) here");
  }
  body->erase("embd_normalize");
  if (norm == -1) (*body)["normalize"] = false;
  if (!body->contains("content")) return {};
  if ((*body)["content"].is_null()) {
    body->erase("content");
    return {};
  }
  if (body->contains("input")) return invalid_argument("give 'content' or 'input', not both");
  const json content = (*body)["content"];
  body->erase("content");
  (*body)["input"] = content;
  return {};
}

Result<LlamaRequest> read_request(const OpenAiDefaults& defaults, Body* body) {
  std::vector<std::string> warnings;
  pass_over_model(defaults, body, &warnings);
  FT_ASSIGN_OR_RETURN(LlamaRequest request, parse_llama_request(*body, defaults));
  request.text.warnings.insert(request.text.warnings.begin(), warnings.begin(), warnings.end());
  return request;
}

}  // namespace

void pass_over_model(const OpenAiDefaults& defaults, Body* body,
                     std::vector<std::string>* warnings) {
  const auto model = body->find("model");
  if (model == body->end() || !model->is_string() || defaults.strict_fields) return;
  const std::string name = model->get<std::string>();
  if (check_model_name(name, defaults).ok()) return;
  body->erase("model");
  warnings->push_back("'model': there is no `" + shown_name(name) + "` here; `" +
                      defaults.model_names.front() + "` answers");
}

Status handle_llama_completion(ServeContext& context,
                               const std::shared_ptr<http::Exchange>& exchange, Body body) {
  FT_RETURN_IF_ERROR(read_llama_prompt(context.engine, &body));
  FT_ASSIGN_OR_RETURN(LlamaRequest request, read_request(context.defaults, &body));
  return run_completion(context, exchange, std::move(request));
}

Status handle_infill(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                     Body body) {
  InfillParts parts;
  FT_RETURN_IF_ERROR(read_infill(body, &parts));
  FT_ASSIGN_OR_RETURN(const InfillTokens tokens, find_infill_tokens(context.engine));
  FT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, infill_prompt(context.engine, tokens, parts));
  for (const char* name : {"input_prefix", "input_suffix", "input_extra"}) body.erase(name);
  body["prompt"] = ids;
  FT_ASSIGN_OR_RETURN(LlamaRequest request, read_request(context.defaults, &body));
  // The gap ends where the model would begin another file.
  std::vector<int32_t>& stops = request.text.requests.front().sampling.stop_token_ids;
  for (const std::optional<int32_t>& id : {tokens.repository, tokens.file}) {
    if (id) stops.push_back(*id);
  }
  return run_completion(context, exchange, std::move(request));
}

Status handle_apply_template(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                             Body body) {
  OpenAiDefaults defaults = context.defaults;
  defaults.refuse_unparsed_tools = false;
  std::vector<std::string> warnings;
  pass_over_model(defaults, &body, &warnings);
  FT_ASSIGN_OR_RETURN(OpenAiRequest request,
                      parse_openai_request(OpenAiKind::kChat, body, defaults));
  std::string prompt;
  FT_RETURN_IF_ERROR(render_messages(context.engine, &request, &prompt));
  FT_RETURN_IF_ERROR(leave_out_bos(context.engine, &prompt));
  add_warnings(request.warnings, &warnings);
  respond_with_warnings(context, *exchange, {{"prompt", prompt}}, warnings);
  return {};
}

Status handle_llama_embedding(ServeContext& context,
                              const std::shared_ptr<http::Exchange>& exchange, Body body) {
  FT_RETURN_IF_ERROR(rename_embedding_fields(&body));
  std::vector<std::string> warnings;
  pass_over_model(context.defaults, &body, &warnings);
  FT_ASSIGN_OR_RETURN(OpenAiRequest request,
                      parse_openai_request(OpenAiKind::kEmbedding, body, context.defaults));
  request.warnings.insert(request.warnings.begin(), warnings.begin(), warnings.end());
  return run_pooled(context, exchange, "embd-", request, [&](OpenAiLabel label) {
    return std::make_unique<LlamaEmbeddingFormat>(request, std::move(label));
  });
}

}  // namespace foretoken
