#include "serve/routes/chat_batch.h"

#include "serve/fields/request_body.h"
#include "serve/openai/openai_format.h"
#include "serve/routes/openai_handlers.h"

namespace foretoken {
namespace {

constexpr size_t kMaxConversations = 4096;

// What holds for a batch beside the rules of chats.
Status check_batch(const Body& body, const OpenAiRequest& first) {
  const auto tools = body.find("tools");
  if (tools != body.end() && !tools->empty()) {
    return invalid_argument("'tools' are not for batches; send chats one by one");
  }
  if (first.stream) return invalid_argument("'stream' is not for batches; remove it");
  const int n = first.requests.front().sampling.n;
  if (n == 1) return {};
  return invalid_argument("'n' must be 1 in a batch, not " + std::to_string(n) +
                          "; give a conversation several times");
}

Status at_conversation(size_t index, const Status& status) {
  return {status.code(), "conversation " + std::to_string(index + 1) + ": " + status.message()};
}

// All of them as one request, whose prompts are made.
Result<OpenAiRequest> join(const Engine& engine, std::vector<OpenAiRequest> chats) {
  OpenAiRequest all;
  for (size_t i = 0; i < chats.size(); ++i) {
    const Status status = render_openai_prompt(engine, &chats[i]);
    if (!status.ok()) return at_conversation(i, status);
    if (i == 0) {
      all = std::move(chats[i]);
      all.messages_json.clear();
    } else {
      all.requests.push_back(std::move(chats[i].requests.front()));
      add_warnings(chats[i].warnings, &all.warnings);
    }
  }
  return all;
}

}  // namespace

Result<std::vector<OpenAiRequest>> parse_chat_batch(const Body& body,
                                                    const OpenAiDefaults& defaults) {
  const auto messages = body.find("messages");
  if (messages == body.end() || !messages->is_array() || messages->empty() ||
      !messages->front().is_array()) {
    return invalid_argument(
        "'messages' must be a list of conversations, [[{\"role\": \"user\", \"content\": ...}], "
        "...]");
  }
  if (messages->size() > kMaxConversations) {
    return invalid_argument("'messages' may hold at most " + std::to_string(kMaxConversations) +
                            " conversations");
  }
  FT_RETURN_IF_ERROR(check_copies(body, "messages", messages->size()));
  Body chat = Body::object();
  for (const auto& [name, value] : body.items()) {
    chat[name] = name == "messages" ? Body() : value;
  }
  std::vector<OpenAiRequest> chats;
  for (size_t i = 0; i < messages->size(); ++i) {
    chat["messages"] = (*messages)[i];
    Result<OpenAiRequest> one = parse_openai_request(OpenAiKind::kChat, chat, defaults);
    if (!one.ok()) return at_conversation(i, one.status());
    if (i == 0) FT_RETURN_IF_ERROR(check_batch(body, one.value()));
    chats.push_back(std::move(one).value());
  }
  return chats;
}

Status handle_chat_batch(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                         const Body& body) {
  FT_ASSIGN_OR_RETURN(std::vector<OpenAiRequest> chats, parse_chat_batch(body, context.defaults));
  FT_ASSIGN_OR_RETURN(OpenAiRequest request, join(context.engine, std::move(chats)));
  ServeResult<PreparedText> prepared = prepare_text(context, &request);
  if (!prepared.ok()) {
    respond_error(*exchange, openai_error, prepared.error());
    return {};
  }
  std::string id = answer_id("chatcmpl-", request.request_id, *exchange);
  const OpenAiLabel label = make_label(context, id, request);
  auto format = std::make_unique<OpenAiFormat>(request, PromptTexts(), label);
  start_generation(context, exchange, request, std::move(prepared.value()), std::move(id),
                   std::move(format));
  return {};
}

}  // namespace foretoken
