#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace foretoken {

// Small questions about the messages of a conversation, which are JSON objects with a "role".

// The role, or nothing.
std::string role_of(const nlohmann::ordered_json& message);

// Whether its role is "system" or "developer".
bool is_instruction(const nlohmann::ordered_json& message);

// The calls of an answer; null when there are none.
nlohmann::ordered_json* calls_of(nlohmann::ordered_json& message);
const nlohmann::ordered_json* calls_of(const nlohmann::ordered_json& message);

// The object that holds the name and the arguments of a call; null when there is none.
nlohmann::ordered_json* function_of(nlohmann::ordered_json& call);

// A member that is a string, or nothing.
std::string text_at(const nlohmann::ordered_json& object, const char* name);

// A content as one text: its parts, which must all be texts, joined by line breaks. Null is empty.
Result<std::string> joined_text(const nlohmann::ordered_json& content);

// The texts of a content, joined by line breaks; other parts are passed over.
std::string texts_of(const nlohmann::ordered_json& content);

// JSON of messages, whose texts may hold bytes that are no UTF-8.
std::string dumped_json(const nlohmann::ordered_json& value);

}  // namespace foretoken
