#include "serve/responses/item_settings.h"

#include <algorithm>
#include <string>
#include <utility>

#include "text/chat_words.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

bool gives_tools(const json& item) {
  const std::string type = text_at(item, "type");
  return type == "additional_tools" || type == "tool_search_output";
}

std::string function_name(const json& tool) {
  return tool.contains("function") ? text_at(tool["function"], "name") : "";
}

// The first `num_old` tools without those of the same names as the others.
void drop_replaced(size_t num_old, json* tools) {
  json kept = json::array();
  for (size_t i = 0; i < tools->size(); ++i) {
    const std::string name = function_name((*tools)[i]);
    const bool replaced =
        i < num_old &&
        std::any_of(
            tools->begin() + static_cast<std::ptrdiff_t>(num_old), tools->end(),
            [&](const json& other) { return !name.empty() && function_name(other) == name; });
    if (!replaced) kept.push_back((*tools)[i]);
  }
  *tools = std::move(kept);
}

// Members that `given` leaves out, or null, stay as they are.
void replace_members(const json& given, json* setting) {
  if (!given.is_object() || !setting->is_object()) {
    if (!given.is_null()) *setting = given;
    return;
  }
  for (const auto& [name, value] : given.items()) {
    if (!value.is_null()) (*setting)[name] = value;
  }
}

}  // namespace

bool is_setting(const json& item) {
  return gives_tools(item) || text_at(item, "type") == "configuration_update";
}

Status read_item_tools(const json& items, const FieldNotes& notes, json* chat,
                       OfferedTools* offered) {
  for (const json& item : items) {
    if (!gives_tools(item) || !item.contains("tools") || item["tools"].is_null()) continue;
    const size_t num_old = chat->contains("tools") ? (*chat)["tools"].size() : 0;
    FT_RETURN_IF_ERROR(read_response_tools(item["tools"], notes, chat, offered));
    if (num_old > 0) drop_replaced(num_old, &(*chat)["tools"]);
  }
  return {};
}

ItemSettings settings_of(const json& items) {
  ItemSettings settings;
  for (const json& item : items) {
    if (text_at(item, "type") != "configuration_update") continue;
    if (item.contains("reasoning")) replace_members(item["reasoning"], &settings.reasoning);
    if (item.contains("text")) replace_members(item["text"], &settings.text);
  }
  return settings;
}

}  // namespace foretoken
