#include "serve/response_handlers.h"

#include "serve/openai_handlers.h"
#include "serve/responses_format.h"

namespace foretoken {

using json = nlohmann::ordered_json;

Status handle_responses(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                        const Body& body) {
  FT_ASSIGN_OR_RETURN(ResponsesRequest request,
                      parse_responses_request(body, context.defaults, context.responses));
  ServeResult<PreparedText> prepared = prepare_text(context, &request.chat);
  if (!prepared.ok()) {
    respond_error(*exchange, openai_error, prepared.error());
    return {};
  }
  std::string id = answer_id("resp_", request.chat.request_id, *exchange);
  const OpenAiRequest chat = request.chat;
  const bool background = request.background;
  const json messages = request.messages;
  const std::string model = chat.model.empty() ? context.model_name() : chat.model;
  auto format = std::make_unique<ResponsesFormat>(std::move(request), id, model, unix_seconds(),
                                                  context.responses);
  watch_tool_calls(context, "responses", &request.chat);
  const json queued = background ? format->unfinished("queued") : json();
  if (background) context.responses.put(id, {queued, messages});
  start_generation(context, background ? nullptr : exchange, chat, std::move(prepared.value()),
                   std::move(id), std::move(format));
  // Only now: whoever knows the id can cancel what has begun.
  if (background) respond_json(*exchange, 200, queued);
  return {};
}

Result<json> find_response(const ServeContext& context, const std::string& id) {
  const std::optional<StoredResponse> found = context.responses.find(id);
  if (found) return found->response;
  return not_found("there is no response '" + id + "' here, or it was forgotten");
}

Result<json> cancel_response(ServeContext& context, const std::string& id) {
  FT_ASSIGN_OR_RETURN(json response, find_response(context, id));
  if (response.value("background", json()) != true) {
    return invalid_argument("the response '" + id +
                            "' does not run in the background; close its connection instead");
  }
  const json status = response["status"];
  if (status == "queued" || status == "in_progress") {
    for (const auto& generation : context.generations.find(id)) generation->abort();
    response["status"] = "cancelled";
  }
  return response;
}

}  // namespace foretoken
