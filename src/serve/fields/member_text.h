#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace foretoken {

// The text of a member that a part of a conversation may have: "" where it is missing or null, or
// where `object` is no object. InvalidArgument for other values, which starts with `where`.
Result<std::string> optional_text(const nlohmann::ordered_json& object, const char* name,
                                  const std::string& where);

// That of a member that it must have.
Result<std::string> required_text(const nlohmann::ordered_json& object, const char* name,
                                  const std::string& where);

// What stands for a part of a tool's result that is no text: an agent that was shown a picture goes
// on, as its conversation holds it from then on.
std::string unread_part(const std::string& type);

}  // namespace foretoken
