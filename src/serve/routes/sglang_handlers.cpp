#include "serve/routes/sglang_handlers.h"

#include "serve/routes/llama_handlers.h"
#include "serve/routes/openai_handlers.h"
#include "serve/sglang/sglang_format.h"
#include "serve/sglang/sglang_request.h"

namespace foretoken {
namespace {

Result<SglangRequest> read_generate(const ServeContext& context, Body body) {
  if (body.contains("inputs") || body.contains("prompt")) {
    return invalid_argument(
        "/generate has SGLang's form here, {\"text\" or \"input_ids\", \"sampling_params\"}; for "
        "'prompt' take /v1/completions");
  }
  std::vector<std::string> warnings;
  pass_over_model(context.defaults, &body, &warnings);
  FT_ASSIGN_OR_RETURN(SglangRequest request, parse_sglang_request(body, context.defaults));
  request.text.warnings.insert(request.text.warnings.begin(), warnings.begin(), warnings.end());
  return request;
}

}  // namespace

Status handle_generate(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                       Body body) {
  FT_ASSIGN_OR_RETURN(SglangRequest request, read_generate(context, std::move(body)));
  ServeResult<PreparedText> prepared = prepare_text(context, &request.text);
  if (!prepared.ok()) {
    respond_error(*exchange, openai_error, prepared.error());
    return {};
  }
  std::string id = answer_id("", request.text.request_id, *exchange);
  OpenAiLabel label = make_label(context, id, request.text);
  const OpenAiRequest& text = request.text;
  auto format = std::make_unique<SglangFormat>(request, std::move(label));
  start_generation(context, exchange, text, std::move(prepared.value()), std::move(id),
                   std::move(format));
  return {};
}

Status handle_sglang_abort(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                           const Body& body) {
  JsonFields fields(body, "");
  std::string id;
  bool all = false;
  fields.read("rid", &id);
  fields.read("abort_all", &all);
  fields.ignore({"abort_message", "finished_reason"});
  fields.refuse_unread();
  if (!all && id.empty()) fields.fail("give 'rid', the id of an answer, or \"abort_all\": true");
  FT_RETURN_IF_ERROR(fields.status());
  const std::vector<std::shared_ptr<Generation>> found =
      all ? context.generations.all() : context.generations.find(id);
  for (const std::shared_ptr<Generation>& generation : found) generation->abort();
  respond_json(*exchange, 200, {{"aborted", found.size()}});
  return {};
}

nlohmann::ordered_json sglang_model_info(const ServeContext& context) {
  return {{"model_path", context.model_name()},
          {"tokenizer_path", context.model_name()},
          {"is_generation", true},
          {"preferred_sampling_params", nullptr},
          {"weight_version", "default"}};
}

}  // namespace foretoken
