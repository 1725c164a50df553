#pragma once
#include <vector>

#include "http/message/exchange.h"

namespace foretoken {

// What models without classes answer where others classify.
inline constexpr const char* kNoClasses =
    "the model has no classes; /v1/embeddings, /v1/score and /v1/rerank tell how near texts are, "
    "and a chat with structured_outputs '{\"choice\": [...]}' picks one of several";

// A route that answers 404 with `why`, which says what to use instead; in Anthropic's form below
// /v1/messages. `why` outlives the route.
http::Route missing_route(const char* method, const char* pattern, const char* why);

// Endpoints of OpenAI's and of other servers that clients try, and what they can do here instead.
std::vector<http::Route> elsewhere_routes();

}  // namespace foretoken
