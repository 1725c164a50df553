#include "text/chat_prompt.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/text/ascii_text.h"
#include "text/chat_calls.h"
#include "text/chat_fit.h"
#include "text/chat_losses.h"
#include "text/chat_roles.h"
#include "text/chat_words.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// The variables as the template takes them: `sent` is their JSON.
std::string fit_variables(json variables, std::string_view sent, const ChatTemplateTraits& traits) {
  const bool none = !variables.contains("tools") || variables["tools"].is_null();
  if (none ? traits.takes_no_tools : traits.takes_tools) return std::string(sent);
  if (none) {
    variables["tools"] = json::array();
  } else {
    variables.erase("tools");
  }
  return dumped_json(variables);
}

// Gives tools without a description an empty one, which templates may need that write it as part of
// a text (gpt-oss). False: all had one.
bool add_descriptions(json& variables) {
  const auto tools = variables.find("tools");
  if (tools == variables.end() || !tools->is_array()) return false;
  bool added = false;
  for (json& tool : *tools) {
    const auto function = tool.is_object() ? tool.find("function") : tool.end();
    if (!tool.is_object() || function == tool.end() || !function->is_object()) continue;
    json& description = (*function)["description"];
    if (!description.is_null()) continue;
    description = "";
    added = true;
  }
  return added;
}

constexpr const char* kAddedQuestion =
    "the model's chat template takes conversations with a user message only; an empty one stands "
    "behind the instructions";

bool is_known_role(const std::string& role) {
  constexpr const char* kRoles[] = {"assistant", "developer", "function", "human",
                                    "system",    "tool",      "user"};
  return std::ranges::find(kRoles, lower_case(role)) != std::end(kRoles);
}

// Many templates take every role that they do not know for the user's, so that an answer of a
// "model" or a "bot" becomes a question: a sentence for each such role, of the first that are
// unknown. `render` makes a prompt.
template <class Render>
std::vector<std::string> roles_shown_as_user(const json& messages, const std::string& prompt,
                                             const Render& render) {
  constexpr size_t kMaxRoles = 4;  // each costs a prompt
  std::vector<std::string> sentences;
  std::set<std::string> seen;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string role = role_of(messages[i]);
    if (role.empty() || is_known_role(role) || !seen.insert(role).second) continue;
    if (seen.size() > kMaxRoles) break;
    json changed = messages;
    for (json& message : changed) {
      if (role_of(message) == role) message["role"] = "user";
    }
    const Result<std::string> other = render(changed);
    if (!other.ok() || other.value() != prompt) continue;
    sentences.push_back("message " + std::to_string(i + 1) +
                        ": the chat template shows the role '" + role +
                        "' as the user's; give user, assistant, system or tool");
  }
  return sentences;
}

// What the prompt lacks of the conversation, or shows as something else, becomes warnings.
template <class Render>
void tell_losses(const json& messages, const json& variables, ChatTemplateTraits traits,
                 const Render& render, ChatPrompt* prompt) {
  // Looked for value by value, as most templates write arguments in words of their own.
  json checked = messages;
  traits.object_arguments = traits.string_arguments = true;
  fit_call_arguments(checked, traits);
  for (std::string& loss : find_losses(checked, variables, prompt->text, render)) {
    prompt->warnings.push_back(std::move(loss));
  }
  for (std::string& sentence : roles_shown_as_user(messages, prompt->text, render)) {
    prompt->warnings.push_back(std::move(sentence));
  }
}

}  // namespace

Result<ChatPrompt> make_chat_prompt(const ChatTemplate& chat, std::string_view messages_json,
                                    std::string_view arguments_json,
                                    const ChatTemplate::Options& options) {
  json messages = json::parse(messages_json, nullptr, /*allow_exceptions=*/false);
  const ChatTemplateTraits* known = chat.traits(arguments_json);
  json variables = json::object();
  if (!arguments_json.empty()) variables = json::parse(arguments_json, nullptr, false);
  if (known == nullptr || !variables.is_object()) {
    // For the words of the error.
    FT_ASSIGN_OR_RETURN(std::string text, chat.render(messages_json, arguments_json, options));
    return ChatPrompt{std::move(text), {}};
  }
  ChatTemplateTraits traits = *known;
  std::string arguments = fit_variables(variables, arguments_json, traits);
  const auto render = [&](const json& sent, std::vector<std::string>* told) -> Result<std::string> {
    FT_ASSIGN_OR_RETURN(const json fitted, fit_conversation(sent, traits, told));
    return chat.render(dumped_json(fitted), arguments, options);
  };
  ChatPrompt prompt;
  Result<std::string> text = render(messages, &prompt.warnings);
  const auto try_again = [&](const json& sent) {
    ChatPrompt other;
    Result<std::string> found = render(sent, &other.warnings);
    if (!found.ok()) return false;
    prompt = std::move(other);
    text = std::move(found);
    return true;
  };
  if (!text.ok() && add_descriptions(variables)) {
    arguments = fit_variables(variables, dumped_json(variables), traits);
    try_again(messages);
  }
  if (!text.ok() && messages.is_array() && traits.renders) {
    json asked = messages;
    if (add_question(asked) && try_again(asked)) {
      messages = std::move(asked);
      prompt.warnings.emplace_back(kAddedQuestion);
    } else {
      traits = least_traits(std::move(traits));
      try_again(messages);
    }
  }
  FT_ASSIGN_OR_RETURN(prompt.text, std::move(text));
  if (!messages.is_array()) return prompt;
  std::vector<std::string> ignored;
  tell_losses(
      messages, variables, traits, [&](const json& sent) { return render(sent, &ignored); },
      &prompt);
  return prompt;
}

}  // namespace foretoken
