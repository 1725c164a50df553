#include "serve/routes/score_handlers.h"

#include <algorithm>

#include "serve/fields/json_fields.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/score_format.h"
#include "serve/routes/openai_handlers.h"

namespace foretoken {
namespace {

// vLLM's "task" of /pooling: this server pools a text to one vector.
Status take_task(Body& body) {
  JsonFields fields(body, "");
  std::string task;
  fields.read("task", &task);
  FT_RETURN_IF_ERROR(fields.status());
  // vLLM's others.
  constexpr const char* kOtherTasks[] = {"classify",    "score",          "plugin",
                                         "token_embed", "token_classify", "embed&token_classify"};
  const bool known =
      std::find(std::begin(kOtherTasks), std::end(kOtherTasks), task) != std::end(kOtherTasks);
  if (!task.empty() && task != "embed" && !known) {
    return invalid_argument("'task' must be \"embed\", not \"" + shown_name(task) + "\"");
  }
  if (known) {
    return unsupported("'task' may be \"embed\" here, not \"" + task +
                       "\": this server pools a text to one vector");
  }
  body.erase("task");
  // Of classifiers.
  for (const char* name : {"activation", "softmax"}) body.erase(name);
  return {};
}

}  // namespace

Status run_pooled(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                  const char* id_prefix, OpenAiRequest request,
                  const std::function<std::unique_ptr<AnswerFormat>(OpenAiLabel)>& make_format) {
  ServeResult<PreparedText> prepared = prepare_text(context, &request);
  if (!prepared.ok()) {
    respond_error(*exchange, openai_error, prepared.error());
    return {};
  }
  std::string id = answer_id(id_prefix, request.request_id, *exchange);
  auto format = make_format(make_label(context, id, request));
  start_generation(context, exchange, request, std::move(prepared.value()), std::move(id),
                   std::move(format));
  return {};
}

Status handle_score(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                    const Body& body) {
  FT_ASSIGN_OR_RETURN(ScoreRequest request, parse_score_request(body, context.defaults));
  FT_RETURN_IF_ERROR(shorten_texts(context.engine, &request));
  FT_RETURN_IF_ERROR(join_pairs(context.engine, &request));
  return run_pooled(context, exchange, "score-", request.embeddings, [&](OpenAiLabel label) {
    return std::make_unique<ScoreFormat>(request, std::move(label));
  });
}

Status handle_rerank(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                     const Body& body) {
  FT_ASSIGN_OR_RETURN(ScoreRequest request, parse_rerank_request(body, context.defaults));
  FT_RETURN_IF_ERROR(shorten_texts(context.engine, &request));
  FT_RETURN_IF_ERROR(join_pairs(context.engine, &request));
  return run_pooled(context, exchange, "rerank-", request.embeddings, [&](OpenAiLabel label) {
    return std::make_unique<RerankFormat>(request, std::move(label));
  });
}

Status handle_pooling(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                      Body body) {
  FT_RETURN_IF_ERROR(take_task(body));
  FT_ASSIGN_OR_RETURN(OpenAiRequest request,
                      parse_openai_request(OpenAiKind::kEmbedding, body, context.defaults));
  return run_pooled(context, exchange, "pool-", request, [&](OpenAiLabel label) {
    return std::make_unique<PoolingFormat>(request, std::move(label));
  });
}

}  // namespace foretoken
