#include "serve/routes/message_handlers.h"

#include "serve/anthropic/message_thread.h"
#include "serve/anthropic/messages_format.h"
#include "serve/anthropic/messages_request.h"
#include "serve/routes/count_handlers.h"
#include "serve/routes/openai_handlers.h"

namespace foretoken {

Status handle_messages(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                       Body body) {
  // An answer to the conversation would be taken for its summary.
  if (!body.value("compaction", Body()).is_null()) {
    return invalid_argument(
        "'compaction': conversations are not summed up here; send a shorter one, or ask for a "
        "summary in a message");
  }
  FT_ASSIGN_OR_RETURN(const MessageThread thread, join_thread(context.threads, &body));
  if (!thread.lost_id.empty()) {
    respond_json(*exchange, 404, lost_thread_error(thread.lost_id));
    return {};
  }
  FT_ASSIGN_OR_RETURN(OpenAiRequest request, parse_messages_request(body, context.defaults));
  watch_tool_calls(context, "other", &request);
  ServeResult<PreparedText> prepared = prepare_text(context, &request);
  if (!prepared.ok()) {
    respond_error(*exchange, anthropic_error, prepared.error());
    return {};
  }
  std::string id = answer_id("msg_", request.request_id, *exchange);
  const std::string model = request.model.empty() ? context.model_name() : request.model;
  KeepMessage keep;
  if (thread.keeps) keep = thread_keeper(context.threads, id, body);
  auto format = std::make_unique<MessagesFormat>(request, id, model, std::move(keep));
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
