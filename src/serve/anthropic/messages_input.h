#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "serve/fields/json_fields.h"

namespace foretoken {

// Adds the messages of Anthropic's "messages" to `messages`, as /v1/chat/completions has them:
// text, documents and search results are text, thinking is reasoning, and calls of tools that ran
// at a service are calls as others, with their results behind them. Images and documents that are
// no text are errors that name the message, in results of tools words that say so; blocks without
// anything to read are left out and told in `notes`.
Status read_anthropic_messages(const nlohmann::ordered_json& given, const FieldNotes& notes,
                               nlohmann::ordered_json* messages);

// The text of a string or of a list of blocks of text, documents and search results; "" for null.
Result<std::string> anthropic_text(const nlohmann::ordered_json& content, const std::string& where);

}  // namespace foretoken
