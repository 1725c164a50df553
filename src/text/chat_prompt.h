#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/chat_template.h"

namespace foretoken {

// What a conversation became for the model.
struct ChatPrompt {
  std::string text;
  // A sentence for each thing that the prompt lacks, or has elsewhere than it was sent.
  std::vector<std::string> warnings;
};

// The prompt of a conversation of any client: the messages are brought into the forms that the
// template takes (`fit_conversation`), rendered, and looked for in the text. Arguments and errors
// are those of ChatTemplate::render. Any number of threads.
Result<ChatPrompt> make_chat_prompt(const ChatTemplate& chat, std::string_view messages_json,
                                    std::string_view arguments_json,
                                    const ChatTemplate::Options& options);

}  // namespace foretoken
