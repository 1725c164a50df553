#pragma once
#include <chrono>
#include <string>

namespace foretoken {

// Progress on stderr. On a terminal one line that is written over, ten times a second; elsewhere a
// line of its own after one second and then every five. One thread at a time.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // True when the next show() is due; saves the caller from making the text in vain.
  bool due() const;
  void show(const std::string& text);
  // Takes the line off the terminal.
  void clear();

 private:
  bool terminal_;
  bool visible_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace foretoken
