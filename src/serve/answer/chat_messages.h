#pragma once
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/result.h"

namespace foretoken {

// Whether a tool's result is what the tool gave, {"temp": 18}, 18 or [1, 2], rather than a text or
// parts of one.
bool is_plain_result(const nlohmann::ordered_json& content);

// The messages as Engine::render_chat takes them: contents are texts or lists of text parts;
// those of answers and of tools may be null or absent. An error names
// the message and what is wrong with it, as parts that are not text; in results of tools a few
// words stand for those, and `unread` receives their types.
Result<nlohmann::ordered_json> normalise_messages(const nlohmann::ordered_json& messages,
                                                  std::set<std::string>* unread = nullptr);

}  // namespace foretoken
