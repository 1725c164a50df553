#pragma once
#include "serve/flow/serve_context.h"

namespace foretoken {

// OpenAI's responses: POST /v1/responses.
Status handle_responses(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                        const Body& body);

// GET /v1/responses/{id}: the response as it is now, without events. One in the background is
// "queued" until its first output has come, then "in_progress".
Result<nlohmann::ordered_json> find_response(const ServeContext& context, const std::string& id);
// GET /v1/responses/{id}?stream=true&starting_after=N: the events of one that streams in the
// background, those up to number N left out. Answers by itself unless there is an error.
Status stream_response(const ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                       const std::string& id);
// GET /v1/responses/{id}/input_items: a page of the items it answers, by "limit", "order" and
// "after" of the query.
Result<nlohmann::ordered_json> list_input_items(const ServeContext& context,
                                                const http::Request& request);
// POST /v1/responses/{id}/cancel: ends one that runs in the background.
Result<nlohmann::ordered_json> cancel_response(ServeContext& context, const std::string& id);
// DELETE /v1/responses/{id}: forgets it, and ends it where it runs in the background.
Result<nlohmann::ordered_json> delete_response(ServeContext& context, const std::string& id);

}  // namespace foretoken
