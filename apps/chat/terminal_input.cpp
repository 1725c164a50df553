#include "apps/chat/terminal_input.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string_view>
#include <utility>

#include "apps/terminal/interrupt.h"

namespace foretoken {
namespace {

constexpr unsigned char kEscape = 0x1B;
constexpr wchar_t kShownLineBreak = 0x240A;
constexpr wchar_t kShownTab = 0x2409;

// The bytes of a marker come together, a key that is pressed alone.
bool more_is_ready() {
  pollfd polled = {STDIN_FILENO, POLLIN, 0};
  return poll(&polled, 1, 20) > 0;
}

void replace_all(std::string_view from, char to, std::string* text) {
  for (size_t at = 0; (at = text->find(from, at)) != std::string::npos; ++at) {
    text->replace(at, from.size(), 1, to);
  }
}

}  // namespace

int read_stdin_byte(unsigned char* byte) {
  while (true) {
    if (interrupt_flag().load()) return -1;
    // The signal may come between the check and the call.
    pollfd polled = {STDIN_FILENO, POLLIN, 0};
    const int ready = poll(&polled, 1, 100);
    if (ready <= 0) continue;
    const ssize_t count = read(STDIN_FILENO, byte, 1);
    if (count >= 0) return static_cast<int>(count);
    if (errno != EINTR && errno != EAGAIN) return 0;
  }
}

int TerminalInput::next_byte(unsigned char* byte) {
  if (ahead_.empty()) return read_stdin_byte(byte);
  *byte = static_cast<unsigned char>(ahead_.front());
  ahead_.erase(0, 1);
  return 1;
}

int TerminalInput::rest_of_character(unsigned char first, wchar_t* character) {
  const int num_more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
  uint32_t code = num_more == 0 ? first : first & (0x3Fu >> num_more);
  for (int i = 0; i < num_more; ++i) {
    unsigned char byte = 0;
    if (next_byte(&byte) != 1) return -1;
    code = code << 6 | (byte & 0x3Fu);
  }
  *character = static_cast<wchar_t>(code);
  return 1;
}

bool TerminalInput::crosses_border() {
  const std::string_view marker = pasting_ ? "[201~" : "[200~";
  std::string seen;
  while (seen.size() < marker.size() && (!ahead_.empty() || more_is_ready())) {
    unsigned char byte = 0;
    if (next_byte(&byte) != 1) break;
    seen += static_cast<char>(byte);
    if (!marker.starts_with(seen)) break;
  }
  if (seen != marker) {
    ahead_.insert(0, seen);
    return false;
  }
  pasting_ = !pasting_;
  pasted_ = true;
  return true;
}

int TerminalInput::next(wchar_t* character) {
  while (true) {
    unsigned char byte = 0;
    if (const int count = next_byte(&byte); count != 1) return count;
    if (byte == kEscape && crosses_border()) continue;
    if (!pasting_) return rest_of_character(byte, character);
    if (byte == '\r' || byte == '\n' || byte == '\t') {
      *character = byte == '\t' ? kShownTab : kShownLineBreak;
      return 1;
    }
    if (byte >= ' ' && byte != 0x7F) return rest_of_character(byte, character);
  }
}

std::string TerminalInput::with_line_breaks(std::string line) {
  if (!std::exchange(pasted_, pasting_)) return line;
  replace_all("\xE2\x90\x8A", '\n', &line);
  replace_all("\xE2\x90\x89", '\t', &line);
  return line;
}

}  // namespace foretoken
