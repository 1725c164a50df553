#include "serve/routes/count_handlers.h"

#include "config/sampling_fields.h"
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

// What the body says of sampling, as a completion says it.
json sampling_of(const Body& body, OpenAiKind kind) {
  const auto given = [&body](const std::string& name) { return body.value(name, json()); };
  json sampling = json::object();
  const auto copy = [&](const std::string& name) {
    if (json value = given(name); !value.is_null()) sampling[name] = std::move(value);
  };
  for (const SamplingField& field : sampling_fields()) copy(field.name);
  for (const char* name : {"structured_outputs", "response_format", "prompt_logprobs"}) copy(name);
  if (kind != OpenAiKind::kChat) {
    copy("logprobs");
    return sampling;
  }
  const json longest = given("max_completion_tokens");
  if (!longest.is_null()) sampling["max_tokens"] = longest;
  sampling.erase("logprobs");
  if (given("logprobs") == true) sampling["logprobs"] = body.value("top_logprobs", json(0));
  return sampling;
}

}  // namespace

Status respond_prompt_length(ServeContext& context, http::Exchange& exchange, OpenAiRequest request,
                             json answer) {
  FT_RETURN_IF_ERROR(render_openai_prompt(context.engine, &request));
  const Request& only = request.requests.front();
  std::vector<int32_t> ids;
  FT_RETURN_IF_ERROR(encode_bounded(context.engine, only.prompt, only.add_special_tokens, &ids));
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

Status handle_render(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                     OpenAiKind kind, const Body& body) {
  FT_ASSIGN_OR_RETURN(OpenAiRequest request,
                      parse_openai_request(kind, body, count_defaults(context)));
  FT_RETURN_IF_ERROR(render_openai_prompt(context.engine, &request));
  const bool chat = kind == OpenAiKind::kChat;
  const std::string id = answer_id(chat ? "chatcmpl-" : "cmpl-", request.request_id, *exchange);
  json all = json::array();
  for (const Request& one : request.requests) {
    std::vector<int32_t> ids = one.prompt_token_ids;
    if (ids.empty()) {
      FT_RETURN_IF_ERROR(encode_bounded(context.engine, one.prompt, one.add_special_tokens, &ids));
    }
    all.push_back(
        {{"request_id", request.requests.size() == 1 ? id : id + "-" + std::to_string(all.size())},
         {"token_ids", std::move(ids)},
         {"features", nullptr},
         {"sampling_params", sampling_of(body, kind)},
         {"model", make_label(context, id, request).model},
         {"stream", request.stream}});
    for (const char* name : {"stream_options", "cache_salt", "priority"}) {
      if (body.contains(name)) all.back()[name] = body[name];
    }
  }
  respond_json(*exchange, 200, chat ? std::move(all.front()) : std::move(all));
  return {};
}

}  // namespace foretoken
