#include "apps/terminal/progress_line.h"

#include <unistd.h>

#include <cstdio>

namespace foretoken {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

}  // namespace

ProgressLine::ProgressLine()
    : terminal_(isatty(STDERR_FILENO) == 1),
      next_(steady_clock::now() + milliseconds(terminal_ ? 100 : 1000)) {}

bool ProgressLine::due() const { return steady_clock::now() >= next_; }

void ProgressLine::show(const std::string& text) {
  next_ = steady_clock::now() + milliseconds(terminal_ ? 100 : 5000);
  const std::string line = terminal_ ? "\r" + text + "\x1b[K" : text + "\n";
  std::fputs(line.c_str(), stderr);
  visible_ = terminal_;
}

void ProgressLine::clear() {
  if (visible_) std::fputs("\r\x1b[K", stderr);
  visible_ = false;
}

}  // namespace foretoken
