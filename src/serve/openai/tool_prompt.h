#pragma once
#include <foretoken/chat_template.h>

#include "serve/openai/openai_request.h"

namespace foretoken {

// Settles what a chat template, null where the model has none, says about the tools and the answer
// of a request: parsers of the name "auto" get a name of the table or none, and tools that the
// template cannot show are described in the messages, with a warning.
void fit_tools(const ChatTemplateTraits* traits, OpenAiRequest* request);

// Whether the request sends tools to the template.
bool sends_tools(const OpenAiRequest& request);

}  // namespace foretoken
