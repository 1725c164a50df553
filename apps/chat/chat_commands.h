#pragma once
#include <foretoken/engine.h>

#include <string>

#include "apps/chat/chat_session.h"
#include "apps/options/sampling_options.h"

namespace foretoken {

// Everything that the slash commands of a chat look at and change.
struct ChatState {
  Engine& engine;
  ChatSession session;
  SamplingFlags sampling;         // what was set, over the model's defaults
  SpeculativeParams speculative;  // of the next answers
};

// What the chat does after a line.
enum class ChatAction { kNothing, kAnswer, kQuit };

struct ChatReply {
  ChatAction action = ChatAction::kNothing;
  std::string text;     // for the user; may have several lines
  bool failed = false;  // `text` is an error
};

// Runs a line that starts with a slash: /help, /system, /reset, /undo, /retry, /set, /params,
// /save, /load, /stats, /spec, /quit. An unknown one is an error with the nearest name.
ChatReply run_chat_command(const std::string& line, ChatState& state);

// The model's defaults with what was set over them.
Result<SamplingParams> chat_sampling(const ChatState& state);

}  // namespace foretoken
