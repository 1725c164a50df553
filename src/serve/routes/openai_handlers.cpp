#include "serve/routes/openai_handlers.h"

#include <optional>

#include "serve/flow/load_report.h"
#include "serve/llamacpp/infill_prompt.h"
#include "serve/openai/openai_format.h"
#include "serve/routes/generate_handlers.h"
#include "serve/routes/score_handlers.h"

namespace foretoken {
namespace {

const char* id_prefix(OpenAiKind kind) {
  switch (kind) {
    case OpenAiKind::kChat:
      return "chatcmpl-";
    case OpenAiKind::kCompletion:
      return "cmpl-";
    default:
      return "embd-";
  }
}

// Where the client asks for it.
void add_load_report(ServeContext& context, const http::Exchange* exchange,
                     http::Headers* headers) {
  if (exchange == nullptr) return;
  const std::string_view format = exchange->request().header("endpoint-load-metrics-format");
  if (format.empty()) return;
  for (auto& header : load_report(format, context.engine.stats())) {
    headers->push_back(std::move(header));
  }
}

}  // namespace

void start_generation(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                      const OpenAiRequest& request, PreparedText prepared, std::string id,
                      std::unique_ptr<AnswerFormat> format) {
  context.warning_log.tell(request.warnings);
  GenerationJob job;
  job.headers = warning_headers(request.warnings);
  add_load_report(context, exchange.get(), &job.headers);
  job.exchange = exchange;
  job.id = std::move(id);
  job.requests = request.requests;
  job.stream = request.stream;
  job.stream_interval = request.stream_interval;
  job.beam_length_penalty = request.beam_length_penalty;
  job.format = std::move(format);
  job.ticket = std::move(prepared.ticket);
  job.origin = exchange == nullptr ? std::move(prepared.origin) : origin_of(exchange->request());
  Generation::start(context.parts(), std::move(job));
}

namespace {

// What asks for the gap before the 'suffix' of a completion; nothing where it is no such
// completion, or the model was not taught to fill gaps.
std::optional<InfillTokens> gap_tokens(const ServeContext& context, OpenAiKind kind,
                                       const Body& body) {
  if (kind != OpenAiKind::kCompletion) return {};
  const auto suffix = body.find("suffix");
  const auto prompt = body.find("prompt");
  const bool has_gap = suffix != body.end() && suffix->is_string() &&
                       !suffix->get_ref<const std::string&>().empty() && prompt != body.end() &&
                       prompt->is_string();
  if (!has_gap) return {};
  const Result<InfillTokens> tokens = find_infill_tokens(context.engine);
  if (!tokens.ok()) return {};
  return tokens.value();
}

// The prompt that asks for what stands in the gap, which ends where the model would begin another
// file.
Result<OpenAiRequest> parse_gap(const ServeContext& context, const InfillTokens& tokens,
                                Body body) {
  InfillParts parts;
  parts.prefix = body["prompt"].get<std::string>();
  parts.suffix = body["suffix"].get<std::string>();
  FT_ASSIGN_OR_RETURN(body["prompt"], infill_prompt(context.engine, tokens, parts));
  body.erase("suffix");
  FT_ASSIGN_OR_RETURN(OpenAiRequest request,
                      parse_openai_request(OpenAiKind::kCompletion, body, context.defaults));
  for (const std::optional<int32_t>& id : {tokens.repository, tokens.file}) {
    if (id) request.requests.front().sampling.stop_token_ids.push_back(*id);
  }
  return request;
}

}  // namespace

Result<OpenAiRequest> parse_text_request(const ServeContext& context, OpenAiKind kind,
                                         const Body& body) {
  const std::optional<InfillTokens> gap = gap_tokens(context, kind, body);
  if (gap) return parse_gap(context, *gap, body);
  return parse_openai_request(kind, body, context.defaults);
}

Status handle_openai(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                     OpenAiKind kind, const Body& body) {
  FT_ASSIGN_OR_RETURN(OpenAiRequest request, parse_text_request(context, kind, body));
  watch_tool_calls(context, "chat_completions", &request);
  ServeResult<PreparedText> prepared = prepare_text(context, &request);
  if (!prepared.ok()) {
    respond_error(*exchange, openai_error, prepared.error());
    return {};
  }
  std::string id = answer_id(id_prefix(kind), request.request_id, *exchange);
  OpenAiLabel label = make_label(context, id, request);
  auto format = std::make_unique<OpenAiFormat>(request, std::move(prepared.value().prompts), label);
  if (exchange->request().header("user-agent").starts_with("mistral-client")) {
    format->name_every_piece();
  }
  start_generation(context, exchange, request, std::move(prepared.value()), std::move(id),
                   std::move(format));
  return {};
}

namespace {

Status answer_invocation(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                         const Body& body) {
  const auto has = [&body](const char* name) {
    const auto found = body.find(name);
    return found != body.end() && !found->is_null();
  };
  if (has("messages")) return handle_openai(context, exchange, OpenAiKind::kChat, body);
  if (has("prompt")) return handle_openai(context, exchange, OpenAiKind::kCompletion, body);
  if (is_tei_root(context, body)) return handle_tei_root(context, exchange, body);
  if (has("inputs")) return handle_tgi(context, exchange, TgiPath::kRoot, body);
  if (has("query")) return handle_rerank(context, exchange, body);
  if (has("text_1") || has("data_1") || has("queries")) {
    return handle_score(context, exchange, body);
  }
  if (has("input")) return handle_openai(context, exchange, OpenAiKind::kEmbedding, body);
  return invalid_argument(
      "the body is of no endpoint; give 'messages', 'prompt', 'input', 'inputs', 'query' or "
      "'text_1'");
}

}  // namespace

Status handle_invocation(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                         const Body& body) {
  const std::string_view adapter =
      exchange->request().header("x-amzn-sagemaker-adapter-identifier");
  if (adapter.empty()) return answer_invocation(context, exchange, body);
  Body of_adapter = body;
  of_adapter["model"] = std::string(adapter);
  return answer_invocation(context, exchange, of_adapter);
}

}  // namespace foretoken
