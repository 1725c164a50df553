#include "apps/terminal/terminal_style.h"

#include <unistd.h>

#include <cstdlib>

namespace foretoken {

TerminalStyle TerminalStyle::choose(const std::string& mode) {
  if (mode != "auto") return TerminalStyle(mode == "always");
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool refused = no_color != nullptr && *no_color != '\0';
  const bool dumb = term != nullptr && std::string(term) == "dumb";
  return TerminalStyle(isatty(STDOUT_FILENO) == 1 && !refused && !dumb);
}

std::string TerminalStyle::in(const std::string& text, const char* code) const {
  if (!colour_ || text.empty()) return text;
  return "\x1b[" + std::string(code) + "m" + text + "\x1b[0m";
}

std::string harmless(const std::string& text) {
  std::string shown;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    const bool control = (byte < 0x20 && character != '\n' && character != '\t') || byte == 0x7f;
    if (control) {
      shown += '^';
      shown += static_cast<char>(byte ^ 0x40);
    } else {
      shown += character;
    }
  }
  return shown;
}

}  // namespace foretoken
