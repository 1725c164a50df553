#pragma once
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "serve/responses/responses_tools.h"

namespace foretoken {

// Whether an item of a conversation is none that is said: it gives tools ("additional_tools", and
// "tool_search_output", those that were found) or settings ("configuration_update").
bool is_setting(const nlohmann::ordered_json& item);

// Adds the tools of the items to those of `chat`; the last of a name counts. InvalidArgument and
// `offered` as with read_response_tools.
Status read_item_tools(const nlohmann::ordered_json& items, const FieldNotes& notes,
                       nlohmann::ordered_json* chat, OfferedTools* offered);

// "reasoning" and "text" of the items, as the body of a request has them; each of their members
// holds until a later one. Null for what none says.
struct ItemSettings {
  nlohmann::ordered_json reasoning;
  nlohmann::ordered_json text;
};
ItemSettings settings_of(const nlohmann::ordered_json& items);

}  // namespace foretoken
