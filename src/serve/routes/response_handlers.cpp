#include "serve/routes/response_handlers.h"

#include "serve/fields/request_warnings.h"
#include "serve/responses/item_page.h"
#include "serve/responses/responses_format.h"
#include "serve/routes/conversation_handlers.h"
#include "serve/routes/openai_handlers.h"

namespace foretoken {

namespace {

using json = nlohmann::ordered_json;

Status no_response(const std::string& id) {
  return not_found("there is no response '" + id + "' here, or it was forgotten");
}

void abort_all(const ServeContext& context, const std::string& id) {
  for (const auto& generation : context.generations.find(id)) generation->abort();
}

}  // namespace

Status handle_responses(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                        const Body& body) {
  FT_ASSIGN_OR_RETURN(
      ResponsesRequest request,
      parse_responses_request(body, context.defaults, context.responses, &context.conversations));
  watch_tool_calls(context, "responses", &request.chat);
  ServeResult<PreparedText> prepared = prepare_text(context, &request.chat);
  if (!prepared.ok()) {
    respond_error(*exchange, openai_error, prepared.error());
    return {};
  }
  std::string id = answer_id("resp_", request.chat.request_id, *exchange);
  OpenAiRequest chat = request.chat;
  const json items = request.items;
  const bool background = request.background;
  const json messages = request.messages;
  const std::string model = chat.model.empty() ? context.model_name() : chat.model;
  KeepOutput keep = conversation_keeper(context, request);
  auto format = std::make_unique<ResponsesFormat>(std::move(request), id, model, unix_seconds(),
                                                  context.responses, std::move(keep));
  const json queued = background ? format->unfinished("queued") : json();
  std::shared_ptr<http::Exchange> answered = background ? nullptr : exchange;
  const auto events = background && chat.stream ? context.responses.make_events() : nullptr;
  if (background) context.responses.put(id, {queued, messages, true, items, events});
  if (events != nullptr) {
    events->follow(exchange, -1, warning_headers(chat.warnings));
    answered = EventLog::make_exchange(events, context.pool, exchange->request());
  }
  prepared.value().origin = origin_of(exchange->request());
  start_generation(context, answered, chat, std::move(prepared.value()), std::move(id),
                   std::move(format));
  // Only now: whoever knows the id can cancel what has begun.
  if (background && events == nullptr) respond_json(*exchange, 200, queued);
  return {};
}

Status stream_response(const ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                       const std::string& id) {
  const std::optional<StoredResponse> found = context.responses.find(id);
  if (!found) return no_response(id);
  if (found->events == nullptr) {
    return invalid_argument("the events of the response '" + id +
                            "' were not kept; ask without 'stream', or create responses with " +
                            "\"background\": true and \"stream\": true");
  }
  const std::string_view from = exchange->request().query_value("starting_after");
  int64_t after = -1;
  if (!from.empty()) {
    FT_ASSIGN_OR_RETURN(after, query_number("starting_after", from, 0, INT64_MAX - 1));
  }
  found->events->follow(exchange, after);
  return {};
}

Result<json> list_input_items(const ServeContext& context, const http::Request& request) {
  const std::string& id = request.path_values.front();
  const std::optional<StoredResponse> found = context.responses.find(id);
  if (!found) return no_response(id);
  return item_page(request, {found->input.begin(), found->input.end()},
                   "the response '" + id + "'");
}

Result<json> find_response(const ServeContext& context, const std::string& id) {
  std::optional<StoredResponse> found = context.responses.find(id);
  if (!found) return no_response(id);
  if (!found->running || found->response["status"] != "queued") return found->response;
  for (const auto& generation : context.generations.find(id)) {
    if (generation->has_output()) found->response["status"] = "in_progress";
  }
  return found->response;
}

Result<json> cancel_response(ServeContext& context, const std::string& id) {
  FT_ASSIGN_OR_RETURN(json response, find_response(context, id));
  if (response.value("background", json()) != true) {
    return invalid_argument("the response '" + id +
                            "' does not run in the background; close its connection instead");
  }
  if (!context.responses.cancel(id)) return response;  // it has ended
  abort_all(context, id);
  response["status"] = "cancelled";
  return response;
}

Result<json> delete_response(ServeContext& context, const std::string& id) {
  const std::optional<StoredResponse> found = context.responses.find(id);
  if (!found || !context.responses.erase(id)) return no_response(id);
  if (found->running) abort_all(context, id);
  return json{{"id", id}, {"object", "response"}, {"deleted", true}};
}

}  // namespace foretoken
