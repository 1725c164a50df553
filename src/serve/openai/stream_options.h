#pragma once
#include "serve/fields/json_fields.h"
#include "serve/openai/openai_request.h"

namespace foretoken {

// Reads "stream", "stream_interval" and "stream_options" {"include_usage",
// "continuous_usage_stats"} into the request, over what the server's defaults say.
void read_stream(JsonFields& fields, const OpenAiDefaults& defaults, OpenAiRequest* request);

}  // namespace foretoken
