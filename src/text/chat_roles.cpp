#include "text/chat_roles.h"

#include <utility>

#include "text/chat_words.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

json as_parts(const json& content) {
  if (content.is_array()) return content;
  if (!content.is_string()) return json::array();
  return json::array({{{"type", "text"}, {"text", content}}});
}

// `first`, a blank line and `second`: a text where both are, else parts.
json together(const json& first, const json& second) {
  if (first.empty() || first == "") return second;
  if (second.empty() || second == "") return first;
  if (first.is_string() && second.is_string()) {
    return first.get<std::string>() + "\n\n" + second.get<std::string>();
  }
  json parts = as_parts(first);
  for (json& part : as_parts(second)) parts.push_back(std::move(part));
  return parts;
}

json content_of(const json& message) { return message.value("content", json("")); }

size_t num_leading(const json& messages) {
  size_t count = 0;
  while (count < messages.size() && is_instruction(messages[count])) ++count;
  return count;
}

size_t num_instructions(const json& messages) {
  size_t count = 0;
  for (const json& message : messages) count += is_instruction(message);
  return count;
}

// Those in [from, to) become part of the first message, which is one already or is made.
void merge_instructions(json& messages, size_t from, size_t to) {
  json merged = json::array();
  json late = json("");
  std::string role = "system";
  for (size_t i = 0; i < messages.size(); ++i) {
    const bool takes_part = is_instruction(messages[i]) && i >= from && i < to;
    if (!takes_part) {
      merged.push_back(std::move(messages[i]));
      continue;
    }
    if (late == "") role = role_of(messages[i]);
    late = together(late, content_of(messages[i]));
  }
  if (merged.empty() || !is_instruction(merged[0])) {
    merged.insert(merged.begin(), json{{"role", role}, {"content", late}});
  } else {
    merged[0]["content"] = together(content_of(merged[0]), late);
  }
  messages = std::move(merged);
}

void put_before_first_question(json& messages) {
  json rest = json::array();
  json instructions = json("");
  for (json& message : messages) {
    if (is_instruction(message)) {
      instructions = together(instructions, content_of(message));
    } else {
      rest.push_back(std::move(message));
    }
  }
  size_t question = 0;
  while (question < rest.size() && role_of(rest[question]) != "user") ++question;
  if (question < rest.size()) {
    rest[question]["content"] = together(instructions, content_of(rest[question]));
  } else {
    rest.insert(rest.begin(), json{{"role", "user"}, {"content", instructions}});
  }
  messages = std::move(rest);
}

}  // namespace

void fit_instructions(json& messages, const ChatTemplateTraits& traits,
                      std::vector<std::string>* warnings) {
  if (!traits.shows_developer) {
    for (json& message : messages) {
      if (role_of(message) == "developer") message["role"] = "system";
    }
  }
  const bool any_system = traits.shows_system || traits.shows_developer;
  if (num_instructions(messages) > 0 && !any_system) {
    put_before_first_question(messages);
    warnings->push_back(
        "the model's chat template has no place for system messages; they stand before the first "
        "user message");
    return;
  }
  size_t leading = num_leading(messages);
  if (leading > 1 && !traits.shows_several_systems) {
    merge_instructions(messages, 1, leading);
    leading = 1;
  }
  if (num_instructions(messages) > leading && !traits.shows_late_system) {
    merge_instructions(messages, leading, messages.size());
    warnings->push_back(
        "the model's chat template takes system messages at the beginning only; later ones were "
        "moved there");
  }
}

void begin_with_question(json& messages, std::vector<std::string>* warnings) {
  const size_t first = num_leading(messages);
  if (first == messages.size() || role_of(messages[first]) != "assistant") return;
  messages.insert(messages.begin() + static_cast<json::difference_type>(first),
                  json{{"role", "user"}, {"content", ""}});
  warnings->push_back(
      "the model's chat template takes conversations that begin with a user message only; an empty "
      "one stands before the first answer");
}

void merge_repeated_roles(json& messages) {
  json merged = json::array();
  for (json& message : messages) {
    const std::string role = role_of(message);
    const bool repeats = !merged.empty() && role_of(merged.back()) == role &&
                         (role == "user" || role == "assistant") && calls_of(message) == nullptr &&
                         calls_of(merged.back()) == nullptr;
    if (repeats) {
      merged.back()["content"] = together(content_of(merged.back()), content_of(message));
    } else {
      merged.push_back(std::move(message));
    }
  }
  messages = std::move(merged);
}

}  // namespace foretoken
