#pragma once
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "serve/fields/json_fields.h"

namespace foretoken {

// Adds the messages that the "input" of /v1/responses means, a text or a list of items, to
// `messages`, as /v1/chat/completions has them. Reasoning goes to the message of the assistant that
// follows it; calls of tools that ran elsewhere are calls as others. What has no text to read (a
// search that a service made, what is encrypted) is left out and told in `notes`. The error names
// the item.
Status read_responses_input(const nlohmann::ordered_json& input, const FieldNotes& notes,
                            nlohmann::ordered_json* messages);

}  // namespace foretoken
