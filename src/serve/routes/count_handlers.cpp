#include "serve/routes/count_handlers.h"

#include "serve/responses/responses_request.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kCountObject = "response.input_tokens";

// Nobody looks for calls in a prompt.
OpenAiDefaults count_defaults(const ServeContext& context) {
  OpenAiDefaults defaults = context.defaults;
  defaults.refuse_unparsed_tools = false;
  return defaults;
}

}  // namespace

Status respond_prompt_length(ServeContext& context, http::Exchange& exchange, OpenAiRequest request,
                             json answer) {
  FT_RETURN_IF_ERROR(render_openai_prompt(context.engine, &request));
  const Request& only = request.requests.front();
  std::vector<int32_t> ids;
  FT_RETURN_IF_ERROR(context.engine.encode(only.prompt, only.add_special_tokens, &ids));
  answer["input_tokens"] = ids.size();
  respond_with_warnings(context, exchange, std::move(answer), request.warnings);
  return {};
}

Status handle_chat_input_tokens(ServeContext& context,
                                const std::shared_ptr<http::Exchange>& exchange, const Body& body) {
  FT_ASSIGN_OR_RETURN(OpenAiRequest request,
                      parse_openai_request(OpenAiKind::kChat, body, count_defaults(context)));
  return respond_prompt_length(context, *exchange, std::move(request), {{"object", kCountObject}});
}

Status handle_response_input_tokens(ServeContext& context,
                                    const std::shared_ptr<http::Exchange>& exchange,
                                    const Body& body) {
  FT_ASSIGN_OR_RETURN(ResponsesRequest request,
                      parse_responses_request(body, count_defaults(context), context.responses,
                                              &context.conversations));
  return respond_prompt_length(context, *exchange, std::move(request.chat),
                               {{"object", kCountObject}});
}

}  // namespace foretoken
