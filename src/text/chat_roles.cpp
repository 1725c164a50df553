#include "text/chat_roles.h"

#include <algorithm>
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

// Those that stand first become one message.
void merge_leading(json& messages, size_t count) {
  for (size_t i = 1; i < count; ++i) {
    messages[0]["content"] = together(content_of(messages[0]), content_of(messages[i]));
  }
  messages.erase(messages.begin() + 1,
                 messages.begin() + static_cast<json::difference_type>(count));
}

// Instructions behind the leading ones become the end of the question or the results before them,
// or the beginning of the next question where an answer stands there; never do they stand between
// calls and results. A conversation that grows keeps its beginning so.
class LateInstructions {
 public:
  explicit LateInstructions(json leading) : told_(std::move(leading)) {}

  void add(json message) {
    const std::string role = role_of(message);
    if (is_instruction(message)) {
      late_ = together(late_, content_of(message));
      const std::string before = told_.empty() ? std::string() : role_of(told_.back());
      if (before == "user" || before == "tool") append();
      return;
    }
    if (waits() && role == "user") message["content"] = together(take(), content_of(message));
    if (waits() && role != "tool") add_question();
    told_.push_back(std::move(message));
    if (waits()) append();
  }

  json finish() {
    if (waits()) add_question();
    return std::move(told_);
  }

 private:
  bool waits() const { return !late_.empty() && late_ != ""; }
  json take() { return std::exchange(late_, json("")); }
  void append() { told_.back()["content"] = together(content_of(told_.back()), take()); }
  void add_question() { told_.push_back({{"role", "user"}, {"content", take()}}); }

  json told_;
  json late_ = json("");
};

json with_late_beside(json messages, size_t leading) {
  const auto end = messages.begin() + static_cast<json::difference_type>(leading);
  json first = json::array();
  first.insert(first.end(), messages.begin(), end);
  LateInstructions late(std::move(first));
  for (size_t i = leading; i < messages.size(); ++i) late.add(std::move(messages[i]));
  return late.finish();
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
  const size_t leading = num_leading(messages);
  const bool any_late = num_instructions(messages) > leading;
  if (any_late && !(any_system && traits.shows_late_system)) {
    messages = with_late_beside(std::move(messages), leading);
    warnings->push_back(
        "the model's chat template takes system messages at the beginning only; later ones are "
        "part of the messages beside them");
  }
  if (leading > 0 && !any_system) {
    put_before_first_question(messages);
    warnings->push_back(
        "the model's chat template has no place for system messages; they stand before the first "
        "user message");
  } else if (leading > 1 && !traits.shows_several_systems) {
    merge_leading(messages, leading);
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

bool add_question(json& messages) {
  const auto asks = [](const json& message) { return role_of(message) == "user"; };
  if (std::ranges::any_of(messages, asks)) return false;
  messages.insert(messages.begin() + static_cast<json::difference_type>(num_leading(messages)),
                  json{{"role", "user"}, {"content", ""}});
  return true;
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
