#pragma once
#include "serve/flow/serve_context.h"
#include "serve/responses/responses_format.h"

namespace foretoken {

// OpenAI's conversations, which /v1/responses goes on with by "conversation".

// POST /v1/conversations: a new one, with "items" and "metadata".
Status handle_create_conversation(ServeContext& context,
                                  const std::shared_ptr<http::Exchange>& exchange,
                                  const Body& body);
// GET /v1/conversations/{id}.
Result<nlohmann::ordered_json> find_conversation(ServeContext& context, const std::string& id);
// POST /v1/conversations/{id}: other "metadata".
Status handle_update_conversation(ServeContext& context,
                                  const std::shared_ptr<http::Exchange>& exchange,
                                  const Body& body);
// DELETE /v1/conversations/{id}.
Result<nlohmann::ordered_json> delete_conversation(ServeContext& context, const std::string& id);

// POST /v1/conversations/{id}/items: "items" behind those that are there.
Status handle_create_items(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                           const Body& body);
// GET /v1/conversations/{id}/items: a page of them, by "limit", "order" and "after".
Result<nlohmann::ordered_json> list_conversation_items(ServeContext& context,
                                                       const http::Request& request);
// GET and DELETE /v1/conversations/{id}/items/{item}, the latter of which answers with the
// conversation.
Result<nlohmann::ordered_json> find_conversation_item(ServeContext& context,
                                                      const http::Request& request);
Result<nlohmann::ordered_json> delete_conversation_item(ServeContext& context,
                                                        const http::Request& request);

// What adds the new items of `request` and then its output to the conversation that it belongs to;
// empty where it belongs to none. `context` outlives it.
KeepOutput conversation_keeper(ServeContext& context, const ResponsesRequest& request);

}  // namespace foretoken
