#include "text/chat_prompt.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "text/chat_calls.h"
#include "text/chat_fit.h"
#include "text/chat_losses.h"
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

}  // namespace

Result<ChatPrompt> make_chat_prompt(const ChatTemplate& chat, std::string_view messages_json,
                                    std::string_view arguments_json,
                                    const ChatTemplate::Options& options) {
  const json messages = json::parse(messages_json, nullptr, /*allow_exceptions=*/false);
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
  const auto try_again = [&] {
    ChatPrompt other;
    Result<std::string> found = render(messages, &other.warnings);
    if (!found.ok()) return;
    prompt = std::move(other);
    text = std::move(found);
  };
  if (!text.ok() && add_descriptions(variables)) {
    arguments = fit_variables(variables, dumped_json(variables), traits);
    try_again();
  }
  if (!text.ok() && messages.is_array() && traits.renders) {
    traits = least_traits(std::move(traits));
    try_again();
  }
  FT_ASSIGN_OR_RETURN(prompt.text, std::move(text));
  // Looked for value by value, as most templates write arguments in words of their own.
  json checked = messages;
  if (!checked.is_array()) return prompt;
  ChatTemplateTraits both = traits;
  both.object_arguments = both.string_arguments = true;
  fit_call_arguments(checked, both);
  std::vector<std::string> ignored;
  for (std::string& loss : find_losses(checked, variables, prompt.text, [&](const json& marked) {
         return render(marked, &ignored);
       })) {
    prompt.warnings.push_back(std::move(loss));
  }
  return prompt;
}

}  // namespace foretoken
