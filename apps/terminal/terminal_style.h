#pragma once
#include <string>

namespace foretoken {

// Colours of the terminal, or none.
class TerminalStyle {
 public:
  // `mode`: auto (on a terminal, unless NO_COLOR is set or TERM is dumb), always or never.
  static TerminalStyle choose(const std::string& mode);
  explicit TerminalStyle(bool colour) : colour_(colour) {}

  // Text of accepted draft tokens.
  std::string accepted(const std::string& text) const { return in(text, "36"); }
  // Remarks.
  std::string dim(const std::string& text) const { return in(text, "2"); }

 private:
  std::string in(const std::string& text, const char* code) const;

  bool colour_;
};

// `text` with control characters other than newline and tab made visible, so that a model cannot
// steer the terminal.
std::string harmless(const std::string& text);

}  // namespace foretoken
