#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "serve/responses/responses_input.h"

namespace foretoken {

// A new id of an item: "msg_...", by its prefix.
std::string make_item_id(const std::string& prefix);

// Adds the "input" of /v1/responses, a text or a list, to `items` as a list of items that is paged
// by ids: each has a type and an id, where one comes again the later item has another, and texts
// are parts.
void add_items(const nlohmann::ordered_json& input, nlohmann::ordered_json* items);

// Items with those that `find_item` knows in place of references to them; references to others are
// left out.
nlohmann::ordered_json resolve_references(const nlohmann::ordered_json& items,
                                          const ItemFinder& find_item);

// The "items" of /v1/conversations as they are kept: as add_items has them, without references, and
// messages "completed". The error names what cannot be read here.
Result<nlohmann::ordered_json> read_conversation_items(const nlohmann::ordered_json& items,
                                                       const ItemFinder& find_item);

}  // namespace foretoken
