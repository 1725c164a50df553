#pragma once
#include <string>
#include <string_view>

namespace foretoken {

// Names of parsers; empty: none.
struct ChatFormats {
  std::string tool_parser;
  std::string reasoning_parser;
};

// The formats in which a model with this chat template writes calls and reasoning: each template
// shows the markers of its model. "generic" where it shows none for calls.
ChatFormats formats_of_template(std::string_view source);

}  // namespace foretoken
