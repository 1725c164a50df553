#include "text/chat_fit.h"

#include "text/chat_calls.h"
#include "text/chat_roles.h"
#include "text/chat_words.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kReasoning[] = {"reasoning_content", "reasoning", "thinking"};

const ChatContentForms* forms_of(const std::string& role, const ChatTemplateTraits& traits) {
  if (role == "system" || role == "developer") return &traits.system_content;
  if (role == "user") return &traits.user_content;
  if (role == "assistant") return &traits.assistant_content;
  if (role == "tool") return &traits.tool_content;
  return nullptr;
}

Status fit_content(json& content, const ChatContentForms& forms) {
  if (content.is_array() && !forms.parts) {
    FT_ASSIGN_OR_RETURN(content, joined_text(content));
  }
  if (content.is_string() && !forms.text) {
    content = json::array({{{"type", "text"}, {"text", content}}});
  }
  return {};
}

// A template that refuses a content beside reasoning and calls gets it as the end of the reasoning.
void join_content_to_reasoning(json& messages) {
  for (json& message : messages) {
    if (calls_of(message) == nullptr) continue;
    const std::string content = texts_of(message.value("content", json()));
    for (const char* name : kReasoning) {
      if (text_at(message, name).empty() || content.empty()) continue;
      message[name] = text_at(message, name) + "\n\n" + content;
      message["content"] = "";
      break;
    }
  }
}

// A template that refuses answers without words gets the thoughts, or a blank.
void fill_empty_answers(json& messages) {
  for (json& message : messages) {
    if (role_of(message) != "assistant" || calls_of(message) != nullptr) continue;
    if (!texts_of(message.value("content", json())).empty()) continue;
    message["content"] = " ";
    for (const char* name : kReasoning) {
      if (text_at(message, name).empty()) continue;
      message["content"] = text_at(message, name);
      message.erase(name);
      break;
    }
  }
}

// Templates take an answer with an empty list of calls for one with calls.
void drop_empty_calls(json& messages) {
  for (json& message : messages) {
    if (!message.is_object() || !message.contains("tool_calls")) continue;
    if (message["tool_calls"].empty()) message.erase("tool_calls");
  }
}

bool any_calls(const json& messages) {
  for (const json& message : messages) {
    if (calls_of(message) != nullptr) return true;
  }
  return false;
}

bool any_results(const json& messages) {
  for (const json& message : messages) {
    if (role_of(message) == "tool") return true;
  }
  return false;
}

void fit_calls(json& messages, const ChatTemplateTraits& traits,
               std::vector<std::string>* warnings) {
  const bool calls = any_calls(messages);
  const bool results = any_results(messages);
  if (results && !traits.shows_tool_results) {
    write_results_as_text(messages);
    warnings->push_back(
        "the model's chat template does not show results of tools; they are given as JSON in user "
        "messages");
  }
  if (!calls) return;
  fit_call_arguments(messages, traits);
  if (!traits.shows_tool_calls) {
    write_calls_as_text(messages);
    warnings->push_back(
        "the model's chat template does not show tool calls of earlier turns; they are given as "
        "JSON in the assistant's text");
    return;
  }
  if (!traits.shows_parallel_tool_calls) split_parallel_calls(messages);
  if (!traits.shows_content_with_reasoning) join_content_to_reasoning(messages);
  fit_call_ids(messages, traits);
}

}  // namespace

Result<json> fit_conversation(json messages, const ChatTemplateTraits& traits,
                              std::vector<std::string>* warnings) {
  if (!messages.is_array()) {
    return invalid_argument("the messages must be a JSON array of {\"role\", \"content\"}");
  }
  drop_empty_calls(messages);
  fit_calls(messages, traits, warnings);
  if (!traits.shows_repeated_roles) begin_with_question(messages, warnings);
  fit_instructions(messages, traits, warnings);
  if (!traits.shows_repeated_roles) merge_repeated_roles(messages);
  if (!traits.takes_empty_answers) fill_empty_answers(messages);
  for (json& message : messages) {
    const ChatContentForms* forms = forms_of(role_of(message), traits);
    if (forms == nullptr) continue;
    const bool nothing = !message.contains("content") || message["content"].is_null();
    if (nothing && calls_of(message) != nullptr) continue;
    if (nothing) message["content"] = "";
    FT_RETURN_IF_ERROR(fit_content(message["content"], *forms));
  }
  if (traits.shows_tool_calls) fit_content_beside_calls(messages, traits);
  return messages;
}

ChatTemplateTraits least_traits(ChatTemplateTraits traits) {
  traits.shows_tool_calls = false;
  traits.shows_tool_results = false;
  traits.shows_developer = false;
  traits.shows_several_systems = false;
  traits.shows_late_system = false;
  traits.shows_repeated_roles = false;
  return traits;
}

}  // namespace foretoken
