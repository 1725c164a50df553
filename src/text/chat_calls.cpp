#include "text/chat_calls.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/files/json_object.h"
#include "text/chat_words.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr size_t kShortId = 9;

bool is_result(const json& message) { return role_of(message) == "tool"; }

void fit_arguments(json& function, const ChatTemplateTraits& traits) {
  json& arguments = function["arguments"];
  const bool blank =
      arguments.is_null() ||
      (arguments.is_string() &&
       arguments.get_ref<const std::string&>().find_first_not_of(" \t\r\n") == std::string::npos);
  if (blank) arguments = json::object();
  const std::string text =
      arguments.is_string() ? arguments.get<std::string>() : dumped_json(arguments);
  if (!traits.object_arguments) {
    arguments = text;
    return;
  }
  json parsed = parsed_ordered_json(text);
  if (parsed.is_object()) {
    arguments = std::move(parsed);
  } else if (traits.string_arguments) {
    arguments = text;
  } else {
    arguments = {{"raw_arguments", text}};
  }
}

bool is_short_id(const std::string& id) {
  if (id.size() != kShortId) return false;
  for (const char c : id) {
    const bool fine = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!fine) return false;
  }
  return true;
}

// Nine letters and digits that stand for an id: the same for the same id in every request.
std::string short_id(const std::string& id) {
  if (is_short_id(id)) return id;
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  constexpr const char* kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::string made;
  for (size_t i = 0; i < kShortId; ++i, hash /= 36) made += kDigits[hash % 36];
  return made;
}

// Gives ids to calls without one, and to results without one those of the calls before, in order.
void add_missing_ids(json& messages) {
  std::vector<std::string> unanswered;
  size_t num_calls = 0;
  for (json& message : messages) {
    if (json* calls = calls_of(message)) {
      unanswered.clear();
      for (json& call : *calls) {
        if (!call.is_object()) continue;
        const std::string number = std::to_string(num_calls++);
        if (text_at(call, "id").empty()) {
          call["id"] =
              "call" + std::string(number.size() < 5 ? 5 - number.size() : 0, '0') + number;
        }
        unanswered.push_back(text_at(call, "id"));
      }
    } else if (is_result(message) && !unanswered.empty()) {
      const std::string id = text_at(message, "tool_call_id");
      auto answered = std::find(unanswered.begin(), unanswered.end(), id);
      if (id.empty()) answered = unanswered.begin();
      if (answered == unanswered.end()) continue;
      message["tool_call_id"] = *answered;
      unanswered.erase(answered);
    }
  }
}

// Whether an id is "functions.NAME:INDEX" or "NAME:INDEX".
bool is_named_id(const std::string& id, const std::string& name) {
  const size_t colon = id.rfind(':');
  if (colon == std::string::npos || colon + 1 == id.size()) return false;
  const std::string_view head = std::string_view(id).substr(0, colon);
  const bool names_it = head == name || head == "functions." + name;
  return !name.empty() && names_it &&
         id.find_first_not_of("0123456789", colon + 1) == std::string::npos;
}

// Ids as Kimi's models write them: "functions.NAME:INDEX", counted through the conversation.
void name_ids(json& messages) {
  std::map<std::string, std::string> renamed;
  size_t num_calls = 0;
  for (json& message : messages) {
    json* calls = calls_of(message);
    if (calls == nullptr && is_result(message)) {
      const auto found = renamed.find(text_at(message, "tool_call_id"));
      if (found != renamed.end()) message["tool_call_id"] = found->second;
    }
    if (calls == nullptr) continue;
    for (json& call : *calls) {
      const json* function = function_of(call);
      if (function == nullptr) continue;
      const std::string name = text_at(*function, "name");
      const std::string id = text_at(call, "id");
      const std::string number = std::to_string(num_calls++);
      if (!is_named_id(id, name)) call["id"] = "functions." + name + ":" + number;
      renamed[id] = text_at(call, "id");
    }
  }
}

// The results behind an answer that belong to one of its calls, taken out of `results`.
std::vector<json> take_results(const json& call, bool is_last, std::vector<json>& results) {
  const std::string id = text_at(call, "id");
  std::vector<json> taken;
  std::vector<json> rest;
  for (json& result : results) {
    const std::string answers = text_at(result, "tool_call_id");
    const bool next = answers.empty() && taken.empty();
    const bool mine = is_last || (answers.empty() ? next : answers == id);
    (mine ? taken : rest).push_back(std::move(result));
  }
  results = std::move(rest);
  return taken;
}

// Names of called tools by id.
std::map<std::string, std::string> called_names(json& messages) {
  std::map<std::string, std::string> names;
  for (json& message : messages) {
    json* calls = calls_of(message);
    if (calls == nullptr) continue;
    for (json& call : *calls) {
      if (const json* function = function_of(call)) {
        names[text_at(call, "id")] = text_at(*function, "name");
      }
    }
  }
  return names;
}

}  // namespace

void fit_call_arguments(json& messages, const ChatTemplateTraits& traits) {
  for (json& message : messages) {
    json* calls = calls_of(message);
    if (calls == nullptr) continue;
    for (json& call : *calls) {
      if (json* function = function_of(call)) fit_arguments(*function, traits);
    }
  }
}

void fit_call_ids(json& messages, const ChatTemplateTraits& traits) {
  if (traits.names_calls_by_id) {
    add_missing_ids(messages);
    return name_ids(messages);
  }
  if (traits.needs_tool_call_ids || !traits.any_tool_call_id) add_missing_ids(messages);
  if (traits.any_tool_call_id) return;
  for (json& message : messages) {
    if (json* calls = calls_of(message)) {
      for (json& call : *calls) {
        if (call.is_object() && call.contains("id")) call["id"] = short_id(text_at(call, "id"));
      }
    } else if (is_result(message) && message.contains("tool_call_id")) {
      message["tool_call_id"] = short_id(text_at(message, "tool_call_id"));
    }
  }
}

void split_parallel_calls(json& messages) {
  json split = json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    json* calls = calls_of(messages[i]);
    if (calls == nullptr || calls->size() < 2) {
      split.push_back(std::move(messages[i]));
      continue;
    }
    const json turn = messages[i];
    std::vector<json> results;
    while (i + 1 < messages.size() && is_result(messages[i + 1])) {
      results.push_back(std::move(messages[++i]));
    }
    const json& all = turn["tool_calls"];
    for (size_t c = 0; c < all.size(); ++c) {
      json one = turn;
      one["tool_calls"] = json::array({all[c]});
      if (c > 0) {
        one["content"] = "";
        for (const char* name : {"reasoning", "reasoning_content", "thinking"}) one.erase(name);
      }
      split.push_back(std::move(one));
      for (json& result : take_results(all[c], c + 1 == all.size(), results)) {
        split.push_back(std::move(result));
      }
    }
  }
  messages = std::move(split);
}

void fit_content_beside_calls(json& messages, const ChatTemplateTraits& traits) {
  for (json& message : messages) {
    if (calls_of(message) == nullptr) continue;
    const bool absent = !message.contains("content");
    const bool null = !absent && message["content"].is_null();
    const bool empty = !absent && (message["content"] == "" || message["content"] == json::array());
    if (!absent && !null && !empty) continue;
    const bool fits = absent ? traits.absent_content
                      : null ? traits.null_content
                             : traits.empty_content;
    if (fits) continue;
    if (traits.empty_content) {
      message["content"] = "";
    } else if (traits.null_content) {
      message["content"] = nullptr;
    } else if (traits.absent_content) {
      message.erase("content");
    }
  }
}

void write_calls_as_text(json& messages) {
  for (json& message : messages) {
    json* calls = calls_of(message);
    if (calls == nullptr) continue;
    std::string text = texts_of(message.value("content", json()));
    for (json& call : *calls) {
      const json* function = function_of(call);
      if (function == nullptr) continue;
      json shown = {{"name", text_at(*function, "name")},
                    {"arguments", function->value("arguments", json::object())}};
      if (call.contains("id")) shown["id"] = call["id"];
      if (!text.empty()) text += '\n';
      text += dumped_json({{"tool_call", shown}});
    }
    message["content"] = text;
    message.erase("tool_calls");
  }
}

void write_results_as_text(json& messages) {
  const std::map<std::string, std::string> names = called_names(messages);
  for (json& message : messages) {
    if (!is_result(message)) continue;
    const std::string id = text_at(message, "tool_call_id");
    std::string name = text_at(message, "name");
    const auto called = names.find(id);
    if (name.empty() && called != names.end()) name = called->second;
    json response = json::object();
    if (!name.empty()) response["tool"] = name;
    response["content"] = texts_of(message.value("content", json()));
    if (!id.empty()) response["tool_call_id"] = id;
    message = {{"role", "user"}, {"content", dumped_json({{"tool_response", response}})}};
  }
}

}  // namespace foretoken
