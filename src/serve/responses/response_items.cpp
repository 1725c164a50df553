#include "serve/responses/response_items.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "serve/fields/json_fields.h"
#include "serve/openai/openai_response.h"
#include "text/chat_words.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// An id for an item that came without one.
std::string new_id_of(const json& item) {
  const json type = item.value("type", json());
  return make_item_id(type == "function_call"          ? "fc"
                      : type == "function_call_output" ? "fco"
                      : type == "reasoning"            ? "rs"
                                                       : "msg");
}

}  // namespace

std::string make_item_id(const std::string& prefix) {
  std::string id = make_openai_id(prefix);
  std::ranges::replace(id, '-', '_');
  return id;
}

void add_items(const json& input, json* items) {
  std::set<std::string> known;
  for (const json& item : *items) known.insert(item.value("id", std::string()));
  const json list =
      input.is_array() ? input : json::array({json{{"role", "user"}, {"content", input}}});
  for (json item : list) {
    if (!item.is_object()) continue;
    if (!item.contains("type")) item["type"] = "message";
    if (item.contains("content") && item["content"].is_string()) {
      const bool own = item.value("role", json()) == "assistant";
      item["content"] = json::array(
          {json{{"type", own ? "output_text" : "input_text"}, {"text", item["content"]}}});
    }
    const bool named = item.contains("id") && item["id"].is_string();
    if (!named || known.contains(item["id"].get<std::string>())) item["id"] = new_id_of(item);
    known.insert(item["id"].get<std::string>());
    items->push_back(std::move(item));
  }
}

json resolve_references(const json& items, const ItemFinder& find_item) {
  json found = json::array();
  for (const json& item : items) {
    if (!item.is_object() || item.value("type", json()) != "item_reference") {
      found.push_back(item);
    } else if (std::optional<json> named = find_item(text_at(item, "id"))) {
      found.push_back(std::move(*named));
    }
  }
  return found;
}

Result<json> read_conversation_items(const json& items, const ItemFinder& find_item) {
  if (!items.is_array()) return invalid_argument("'items' must be a list of items");
  const json found = resolve_references(items, find_item);
  json kept = json::array();
  if (found.empty()) return kept;
  // What a response could not read is told now.
  std::vector<std::string> left_out;
  json messages = json::array();
  const Status status = read_responses_input(found, {&left_out}, &messages);
  if (!status.ok()) {
    const std::string& why = status.message();
    constexpr std::string_view kInput = "'input'";
    const bool named = why.starts_with(kInput);
    return invalid_argument(named ? "'items'" + why.substr(kInput.size()) : why);
  }
  add_items(found, &kept);
  for (json& item : kept) {
    if (item["type"] == "message" && !item.contains("status")) item["status"] = "completed";
  }
  return kept;
}

}  // namespace foretoken
