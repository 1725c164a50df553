#pragma once
#include <nlohmann/json.hpp>

#include "base/result.h"

namespace foretoken {

// The messages as Engine::render_chat takes them: contents are texts or lists of text parts;
// those of answers and of tools may be null or absent. An error names
// the message and what is wrong with it; parts that are not text are Unsupported.
Result<nlohmann::ordered_json> normalise_messages(const nlohmann::ordered_json& messages);

}  // namespace foretoken
