#include "apps/chat/chat_session.h"

#include "serve/answer/chat_messages.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

bool is_role(const json& message, const char* role) { return message["role"] == role; }

// Where the second question starts, or the end.
size_t second_question(const json& messages) {
  size_t i = 1;
  while (i < messages.size() && !is_role(messages[i], "user")) ++i;
  return i;
}

}  // namespace

ChatSession::ChatSession(const Engine& engine, std::string arguments_json)
    : engine_(engine), arguments_json_(std::move(arguments_json)) {
  std::string prompt;
  const json probe = json::array({{{"role", "user"}, {"content", "Hi"}}});
  const Status status = engine_.render_chat(probe.dump(), arguments_json_, &prompt);
  has_template_ =
      status.code() != StatusCode::kUnsupported && status.code() != StatusCode::kNotFound;
}

void ChatSession::add(const char* role, const std::string& text) {
  messages_.push_back({{"role", role}, {"content", text}});
}

bool ChatSession::undo_answer() {
  while (!messages_.empty() && !is_role(messages_.back(), "user")) {
    messages_.erase(messages_.size() - 1);
  }
  return !messages_.empty();
}

bool ChatSession::undo() {
  if (!undo_answer()) return false;
  messages_.erase(messages_.size() - 1);
  return true;
}

json ChatSession::messages() const {
  json all = json::array();
  if (!system_.empty()) all.push_back({{"role", "system"}, {"content", system_}});
  for (const json& message : messages_) all.push_back(message);
  return all;
}

Status ChatSession::set_messages(const json& messages) {
  FT_ASSIGN_OR_RETURN(json all, normalise_messages(messages));
  system_.clear();
  if (is_role(all.front(), "system") && all.front()["content"].is_string()) {
    system_ = all.front()["content"].get<std::string>();
    all.erase(0);
  }
  messages_ = std::move(all);
  return {};
}

Result<std::string> ChatSession::render(const json& messages) const {
  std::string text;
  if (has_template_) {
    const std::string json_text = messages.dump(-1, ' ', false, json::error_handler_t::replace);
    FT_RETURN_IF_ERROR(engine_.render_chat(json_text, arguments_json_, &text));
    return text;
  }
  for (const json& message : messages) {
    const bool joins = text.empty() || is_role(message, "assistant");
    text += (joins ? "" : "\n") + message["content"].get<std::string>();
  }
  return text;
}

Result<ChatSession::Prompt> ChatSession::make_prompt(int wanted_room) {
  const json kept = messages_;
  const int max_len = engine_.info().max_model_len;
  Prompt prompt;
  while (true) {
    FT_ASSIGN_OR_RETURN(prompt.text, render(messages()));
    std::vector<int32_t> ids;
    FT_RETURN_IF_ERROR(engine_.encode(prompt.text, !has_template_, &ids));
    prompt.num_tokens = static_cast<int>(ids.size());
    const size_t next = second_question(messages_);
    const bool last = next >= messages_.size();
    if (ids.size() + (last ? 1 : static_cast<size_t>(wanted_room)) <=
        static_cast<size_t>(max_len)) {
      break;
    }
    if (last) {
      messages_ = kept;
      return invalid_argument("the message has " + std::to_string(ids.size()) +
                              " tokens with its template, but max_model_len is " +
                              std::to_string(max_len) + "; shorten it or raise --max-model-len");
    }
    messages_.erase(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(next));
  }
  prompt.num_dropped = static_cast<int>(kept.size() - messages_.size());
  return prompt;
}

}  // namespace foretoken
