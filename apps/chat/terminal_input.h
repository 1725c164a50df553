#pragma once
#include <string>

namespace foretoken {

// Characters of a terminal for a line editor that knows no pasted texts: of one, line breaks and
// tabs are shown as the signs that stand for them, so that all of it is one line. One thread.
class TerminalInput {
 public:
  // The next character: 1, 0 at the end, -1 when interrupt_flag() is set.
  int next(wchar_t* character);

  // `line` with the line breaks and tabs of what was pasted since the last call.
  std::string with_line_breaks(std::string line);

 private:
  int next_byte(unsigned char* byte);
  int rest_of_character(unsigned char first, wchar_t* character);
  // Whether a pasted text begins or ends behind an escape that was read.
  bool crosses_border();

  std::string ahead_;  // read, but not yet given
  bool pasting_ = false;
  bool pasted_ = false;
};

// A byte of stdin: 1, 0 at the end, -1 when interrupt_flag() is set.
int read_stdin_byte(unsigned char* byte);

// What tells a terminal to mark pasted texts, and to leave that.
inline constexpr const char* kMarkPastes = "\x1b[?2004h";
inline constexpr const char* kMarkNoPastes = "\x1b[?2004l";

}  // namespace foretoken
