#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "serve/fields/json_fields.h"

namespace foretoken {

// The item of an earlier response by its id.
using ItemFinder = std::function<std::optional<nlohmann::ordered_json>(const std::string& id)>;

// Adds the messages that the "input" of /v1/responses means, a text or a list of items, to
// `messages`, as /v1/chat/completions has them. Reasoning goes to the message of the assistant that
// follows it; calls of tools that ran elsewhere are calls as others. Items may be named instead of
// sent, {"type": "item_reference", "id"}, where `find_item` has them. What has no text to read (a
// search that a service made, what is encrypted, a name of nothing) is left out and told in
// `notes`. The error names the item.
Status read_responses_input(const nlohmann::ordered_json& input, const FieldNotes& notes,
                            nlohmann::ordered_json* messages, const ItemFinder& find_item = {});

}  // namespace foretoken
