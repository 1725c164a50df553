#include "serve/routes/score_handlers.h"

#include <algorithm>
#include <utility>

#include "serve/fields/json_fields.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/score_format.h"
#include "serve/routes/elsewhere_routes.h"
#include "serve/routes/openai_handlers.h"
#include "serve/sglang/label_scores.h"
#include "serve/tei/tei_format.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// vLLM's "task" of /pooling: a text becomes one vector, or numbers of each token, which goes
// without saying for a model that has such.
struct PoolingTask {
  bool of_tokens = false;
  bool activates = true;  // labels of tokens become parts of 1
};

Result<PoolingTask> take_task(const EngineInfo& info, Body& body) {
  JsonFields fields(body, "");
  std::string task;
  PoolingTask taken;
  fields.read("task", &task);
  for (const char* name : {"activation", "use_activation", "softmax"}) {
    if (info.labels_tokens) fields.read(name, &taken.activates);
  }
  FT_RETURN_IF_ERROR(fields.status());
  // vLLM's others.
  constexpr const char* kOtherTasks[] = {"classify", "score", "plugin", "embed&token_classify"};
  const bool known =
      std::find(std::begin(kOtherTasks), std::end(kOtherTasks), task) != std::end(kOtherTasks);
  const bool names_tokens = task == "token_embed" || task == "token_classify";
  if (!task.empty() && task != "embed" && !names_tokens && !known) {
    return invalid_argument(
        "'task' must be \"embed\", \"token_embed\" or \"token_classify\", not \"" +
        shown_name(task) + "\"");
  }
  if (known) {
    return unsupported(
        "'task' may be \"embed\", \"token_embed\" or \"token_classify\" here, not \"" + task +
        "\"; texts are classified by /classify and compared by /score");
  }
  if (names_tokens && info.token_size > 0 && (task == "token_classify") != info.labels_tokens) {
    return unsupported("'task' may not be \"" + task + "\": this model gives " +
                       (info.labels_tokens ? "labels" : "vectors") + " of tokens");
  }
  taken.of_tokens = names_tokens || (task.empty() && info.token_size > 0);
  body.erase("task");
  for (const char* name : {"activation", "use_activation", "softmax"}) body.erase(name);
  return taken;
}

Status check_classes(const ServeContext& context) {
  if (context.engine.info().num_labels > 0) return {};
  return not_found(kNoClasses);
}

Status handle_embed(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                    const Body& body) {
  FT_ASSIGN_OR_RETURN(OpenAiRequest request, parse_tei_embed(body, context.defaults));
  return run_pooled(
      context, exchange, "embed-", request,
      [&](OpenAiLabel label) {
        return std::make_unique<TeiEmbedFormat>(request, std::move(label));
      },
      tei_error);
}

Status handle_similarity(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                         const Body& body) {
  FT_ASSIGN_OR_RETURN(OpenAiRequest request, parse_tei_similarity(body, context.defaults));
  return run_pooled(
      context, exchange, "similarity-", std::move(request),
      [](OpenAiLabel label) { return std::make_unique<TeiSimilarityFormat>(std::move(label)); },
      tei_error);
}

// One request for each pair takes the place of those of its texts.
Status join_texts(const Engine& engine, TeiPredict* predict) {
  std::vector<Request> joined;
  size_t next = 0;
  for (const bool is_pair : predict->are_pairs) {
    Request& first = predict->texts.requests[next++];
    if (is_pair) {
      Request& second = predict->texts.requests[next++];
      FT_RETURN_IF_ERROR(join_pair(engine, first, &second));
      joined.push_back(std::move(second));
    } else {
      joined.push_back(std::move(first));
    }
  }
  predict->texts.requests = std::move(joined);
  return {};
}

Status handle_predict(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                      const Body& body) {
  FT_RETURN_IF_ERROR(check_classes(context));
  FT_ASSIGN_OR_RETURN(TeiPredict predict, parse_tei_predict(body, context.defaults));
  FT_RETURN_IF_ERROR(join_texts(context.engine, &predict));
  return run_pooled(
      context, exchange, "predict-", predict.texts,
      [&](OpenAiLabel label) {
        return std::make_unique<TeiPredictFormat>(context.engine.info(), predict, std::move(label));
      },
      tei_error);
}

// {"ids"}: one list of token ids, or several.
Status handle_decode(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                     const Body& body) {
  JsonFields fields(body, "");
  bool skip_special = true;
  fields.read("skip_special_tokens", &skip_special);
  const json* ids = fields.raw("ids");
  if (ids == nullptr || !ids->is_array() || ids->empty()) {
    fields.fail("'ids' must be a list of token ids, or a list of these");
  }
  fields.refuse_unread();
  FT_RETURN_IF_ERROR(fields.status());
  const json lists = ids->front().is_array() ? *ids : json::array({*ids});
  json texts = json::array();
  for (const json& list : lists) {
    const json holder = {{"ids", list}};
    JsonFields one(holder, "");
    std::vector<int32_t> tokens;
    one.read("ids", &tokens);
    FT_RETURN_IF_ERROR(one.status());
    std::string text;
    FT_RETURN_IF_ERROR(context.engine.decode(tokens, skip_special, &text));
    texts.push_back(std::move(text));
  }
  respond_json(*exchange, 200, texts);
  return {};
}

// Tokens of one answer: each is told in some hundred bytes.
constexpr size_t kMaxTold = size_t{1} << 19;

Result<json> tokens_of(const Engine& engine, const std::string& text, bool add_special,
                       size_t most) {
  std::vector<int32_t> ids;
  FT_RETURN_IF_ERROR(encode_bounded(engine, text, add_special, &ids));
  if (ids.size() > most) {
    return invalid_argument("'inputs' have more than " + std::to_string(kMaxTold) +
                            " tokens, the most of one answer; send them in parts");
  }
  json tokens = json::array();
  for (const int32_t id : ids) {
    std::string shown, plain;
    FT_RETURN_IF_ERROR(engine.decode({id}, false, &shown));
    FT_RETURN_IF_ERROR(engine.decode({id}, true, &plain));
    const bool special = plain.empty() && !shown.empty();
    tokens.push_back(
        {{"id", id}, {"text", shown}, {"special", special}, {"start", nullptr}, {"stop", nullptr}});
  }
  return tokens;
}

http::Route tei_route(ServeContext& context, const char* pattern, BodyHandler handle) {
  http::Route route;
  route.method = "POST";
  route.pattern = pattern;
  route.handler = on_pool(context, tei_error, std::move(handle));
  return route;
}

}  // namespace

Status run_pooled(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                  const char* id_prefix, OpenAiRequest request,
                  const std::function<std::unique_ptr<AnswerFormat>(OpenAiLabel)>& make_format,
                  const ErrorText& error_text) {
  ServeResult<PreparedText> prepared = prepare_text(context, &request);
  if (!prepared.ok()) {
    respond_error(*exchange, error_text, prepared.error());
    return {};
  }
  std::string id = answer_id(id_prefix, request.request_id, *exchange);
  auto format = make_format(make_label(context, id, request));
  start_generation(context, exchange, request, std::move(prepared.value()), std::move(id),
                   std::move(format));
  return {};
}

namespace {

Status answer_labels(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                     const Body& body, bool as_lists) {
  FT_ASSIGN_OR_RETURN(LabelScoring scoring,
                      parse_label_scoring(body, context.engine, context.defaults, as_lists));
  return run_pooled(context, exchange, "generative-scoring-", scoring.texts,
                    [&](OpenAiLabel label) {
                      return std::make_unique<LabelScoreFormat>(scoring, std::move(label));
                    });
}

}  // namespace

Status handle_generative_scoring(ServeContext& context,
                                 const std::shared_ptr<http::Exchange>& exchange,
                                 const Body& body) {
  return answer_labels(context, exchange, body, false);
}

Status handle_score(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                    const Body& body) {
  if (JsonFields(body, "").has("label_token_ids")) {
    return answer_labels(context, exchange, body, true);
  }
  FT_ASSIGN_OR_RETURN(ScoreRequest request, parse_score_request(body, context.defaults));
  FT_RETURN_IF_ERROR(prepare_comparison(context.engine, &request));
  return run_pooled(context, exchange, "score-", request.embeddings, [&](OpenAiLabel label) {
    return std::make_unique<ScoreFormat>(request, std::move(label));
  });
}

namespace {

Status answer_ranking(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                      const Body& body, PooledFormat::ErrorBody error_body) {
  FT_ASSIGN_OR_RETURN(ScoreRequest request, parse_rerank_request(body, context.defaults));
  FT_RETURN_IF_ERROR(prepare_comparison(context.engine, &request));
  return run_pooled(
      context, exchange, "rerank-", request.embeddings,
      [&](OpenAiLabel label) {
        return std::make_unique<RerankFormat>(request, std::move(label), error_body);
      },
      error_body);
}

}  // namespace

Status handle_rerank(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                     const Body& body) {
  if (ranking_form(body) != RankingForm::kTei)
    return answer_ranking(context, exchange, body, openai_error);
  const Status status = answer_ranking(context, exchange, body, tei_error);
  if (!status.ok()) respond_error(*exchange, tei_error, status);
  return {};
}

Status handle_pooling(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                      Body body) {
  const EngineInfo& info = context.engine.info();
  FT_ASSIGN_OR_RETURN(const PoolingTask task, take_task(info, body));
  FT_ASSIGN_OR_RETURN(OpenAiRequest request,
                      parse_openai_request(OpenAiKind::kEmbedding, body, context.defaults));
  TokenNumbers tokens;
  if (task.of_tokens) {
    for (Request& each : request.requests) each.pooling = Pooling::kTokens;
    tokens = {info.token_size, info.labels_tokens && task.activates};
  }
  return run_pooled(context, exchange, "pool-", request, [&](OpenAiLabel label) {
    return std::make_unique<PoolingFormat>(request, tokens, std::move(label));
  });
}

std::vector<http::Route> tei_routes(ServeContext& context) {
  return {
      tei_route(context, "/embed", handle_embed),
      tei_route(context, "/similarity", handle_similarity),
      tei_route(context, "/predict", handle_predict),
      tei_route(context, "/decode", handle_decode),
      missing_route("POST", "/embed_sparse",
                    "words are not weighed here (SPLADE); /embed and /v1/embeddings make dense "
                    "vectors"),
      missing_route("POST", "/embed_all",
                    "a text becomes one vector here, not one for each token; use /embed or "
                    "/v1/embeddings"),
  };
}

bool is_tei_root(const ServeContext& context, const Body& body) {
  const EngineInfo& info = context.engine.info();
  return is_tei_body(body, info.pair_marks == 0 && info.num_labels == 0);
}

Status handle_tei_root(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                       const Body& body) {
  const auto inputs = body.find("inputs");
  const bool compares = inputs != body.end() && inputs->is_object();
  const BodyHandler handle = body.contains("query")                 ? BodyHandler(handle_rerank)
                             : compares                             ? BodyHandler(handle_similarity)
                             : context.engine.info().num_labels > 0 ? BodyHandler(handle_predict)
                                                                    : BodyHandler(handle_embed);
  const Status status = handle(context, exchange, body);
  if (!status.ok()) respond_error(*exchange, tei_error, status);
  return {};
}

Status handle_tei_tokenize(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                           const Body& body) {
  JsonFields fields(body, "");
  std::vector<std::string> texts;
  bool add_special = true;
  fields.read("add_special_tokens", &add_special);
  const json* inputs = fields.raw("inputs");
  if (inputs->is_string()) {
    texts.push_back(inputs->get<std::string>());
  } else {
    fields.read("inputs", &texts);
  }
  fields.refuse({{"prompt_name", "put the prompt before the texts"}});
  fields.refuse_unread();
  FT_RETURN_IF_ERROR(fields.status());
  json answer = json::array();
  size_t left = kMaxTold;
  for (const std::string& text : texts) {
    FT_ASSIGN_OR_RETURN(json tokens, tokens_of(context.engine, text, add_special, left));
    left -= tokens.size();
    answer.push_back(std::move(tokens));
  }
  respond_json(*exchange, 200, answer);
  return {};
}

Status handle_classify(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                       Body body) {
  FT_RETURN_IF_ERROR(check_classes(context));
  JsonFields fields(body, "");
  bool activates = true;
  for (const char* name : {"activation", "use_activation", "softmax"}) {
    fields.read(name, &activates);
  }
  FT_RETURN_IF_ERROR(fields.status());
  for (const char* name : {"activation", "use_activation", "softmax"}) body.erase(name);
  const ClassRule rule = activates ? ClassRule::kOfModel : ClassRule::kNone;
  FT_ASSIGN_OR_RETURN(OpenAiRequest request,
                      parse_openai_request(OpenAiKind::kEmbedding, body, context.defaults));
  return run_pooled(context, exchange, "classify-", request, [&](OpenAiLabel label) {
    return std::make_unique<ClassifyFormat>(context.engine.info(), rule, request, std::move(label));
  });
}

}  // namespace foretoken
