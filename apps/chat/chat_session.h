#pragma once
#include <foretoken/engine.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace foretoken {

// The conversation of a chat. One thread.
class ChatSession {
 public:
  // `arguments_json` goes to the chat template. The engine must outlive this.
  ChatSession(const Engine& engine, std::string arguments_json);

  // Whether the model has a chat template; without one the model goes on with the plain text.
  bool has_template() const { return has_template_; }

  void set_system(const std::string& text) { system_ = text; }
  void add(const char* role, const std::string& text);
  // Takes the last question and its answer back; false when there is none.
  bool undo();
  // Takes the last answer back and leaves its question; false when there is no question.
  bool undo_answer();
  // Forgets all but the system text.
  void reset() { messages_ = nlohmann::ordered_json::array(); }

  struct Prompt {
    std::string text;
    int num_tokens = 0;
    int num_dropped = 0;  // messages that were forgotten to make room
  };
  // The prompt of the conversation with room for `wanted_room` more tokens, or, of the last
  // question alone, for one. The oldest questions and answers are forgotten where they do not fit.
  // An error leaves the conversation as it is.
  Result<Prompt> make_prompt(int wanted_room);

  // [{"role", "content"}, ...], the system text first.
  nlohmann::ordered_json messages() const;
  // The reverse; an error leaves the conversation as it is.
  Status set_messages(const nlohmann::ordered_json& messages);

 private:
  Result<std::string> render(const nlohmann::ordered_json& messages) const;

  const Engine& engine_;
  const std::string arguments_json_;
  bool has_template_ = false;
  std::string system_;
  nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();  // without the system text
};

}  // namespace foretoken
