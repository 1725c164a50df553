#pragma once
#include <string>

#include "base/result.h"

namespace foretoken {

// The arguments of Engine::render_chat, taken apart.
struct ChatArguments {
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  std::string variables;  // JSON object for the template; empty: none
};

// `json`: empty, or an object. The members of chat_template_kwargs join the others, which win over
// them. InvalidArgument names the field at fault.
Result<ChatArguments> parse_chat_arguments(const std::string& json);

}  // namespace foretoken
