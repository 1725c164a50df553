#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "serve/flow/conversation_store.h"
#include "serve/flow/response_store.h"
#include "serve/openai/openai_request.h"
#include "serve/responses/responses_tools.h"

namespace foretoken {

// A body of OpenAI's /v1/responses.
struct ResponsesRequest {
  OpenAiRequest chat;    // what it means
  OfferedTools offered;  // tools that are functions of another form there
  // What the response repeats of it: "instructions", "tools", "temperature", ...
  nlohmann::ordered_json repeated;
  // The conversation without instructions, for a response that goes on with it.
  nlohmann::ordered_json messages;
  nlohmann::ordered_json items;  // as StoredResponse::input
  size_t num_items_before = 0;   // of those, what its input does not say
  std::string conversation;      // the id of the one that it belongs to; empty: none
  bool store = true;
  bool background = false;
};

// Reads it: input as a text or a list of items, instructions, tools, text.format, reasoning.effort,
// previous_response_id out of `store`, conversation out of `conversations` (null: there are none),
// and vLLM's further sampling fields by their names. Images and files are errors; tools that would
// run at a service and items without text are left out with a warning.
Result<ResponsesRequest> parse_responses_request(const nlohmann::ordered_json& body,
                                                 const OpenAiDefaults& defaults,
                                                 const ResponseStore& store,
                                                 ConversationStore* conversations = nullptr);

}  // namespace foretoken
