#pragma once
#include <nlohmann/json.hpp>

namespace foretoken {

// The messages for a chat template that cannot show tools: a system text describes `tools` (the
// request's array; null: none) and how to call one, earlier calls become text of that form, and
// results become the user's. The parser "generic" reads what the model then writes.
nlohmann::ordered_json with_generic_tools(const nlohmann::ordered_json& messages,
                                          const nlohmann::ordered_json& tools);

// Whether the messages hold calls or results.
bool holds_calls(const nlohmann::ordered_json& messages);

}  // namespace foretoken
