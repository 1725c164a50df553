#include "serve/routes/message_handlers.h"

#include "serve/anthropic/messages_format.h"
#include "serve/anthropic/messages_request.h"
#include "serve/routes/count_handlers.h"
#include "serve/routes/openai_handlers.h"

namespace foretoken {

Status handle_messages(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                       const Body& body) {
  FT_ASSIGN_OR_RETURN(OpenAiRequest request, parse_messages_request(body, context.defaults));
  watch_tool_calls(context, "other", &request);
  ServeResult<PreparedText> prepared = prepare_text(context, &request);
  if (!prepared.ok()) {
    respond_error(*exchange, anthropic_error, prepared.error());
    return {};
  }
  std::string id = answer_id("msg_", request.request_id, *exchange);
  const std::string model = request.model.empty() ? context.model_name() : request.model;
  auto format = std::make_unique<MessagesFormat>(request, id, model);
  start_generation(context, exchange, request, std::move(prepared.value()), std::move(id),
                   std::move(format));
  return {};
}

Status handle_count_tokens(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                           const Body& body) {
  OpenAiDefaults defaults = context.defaults;
  defaults.refuse_unparsed_tools = false;
  FT_ASSIGN_OR_RETURN(OpenAiRequest request, parse_messages_request(body, defaults));
  return respond_prompt_length(context, *exchange, std::move(request),
                               nlohmann::ordered_json::object());
}

}  // namespace foretoken
