#pragma once
#include <nlohmann/json.hpp>

#include "base/result.h"

namespace foretoken {

// Adds the messages that the "input" of /v1/responses means, a text or a list of items, to
// `messages`, as /v1/chat/completions has them. The error names the item.
Status read_responses_input(const nlohmann::ordered_json& input, nlohmann::ordered_json* messages);

}  // namespace foretoken
