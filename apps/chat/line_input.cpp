#include "apps/chat/line_input.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "apps/terminal/interrupt.h"

namespace foretoken {
namespace {

constexpr int kHistoryLines = 1000;

// Waits for a byte of stdin: 1, 0 at the end, -1 on a signal.
int read_byte(unsigned char* byte) {
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

// One character of UTF-8 for libedit, whose own reader would swallow a signal.
int read_character(EditLine*, wchar_t* character) {
  unsigned char byte = 0;
  const int count = read_byte(&byte);
  if (count != 1) return count;
  const int num_more = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : byte >= 0xC0 ? 1 : 0;
  uint32_t code = num_more == 0 ? byte : byte & (0x3Fu >> num_more);
  for (int i = 0; i < num_more; ++i) {
    if (read_byte(&byte) != 1) return -1;
    code = code << 6 | (byte & 0x3Fu);
  }
  *character = static_cast<wchar_t>(code);
  return 1;
}

}  // namespace

struct LineInput::Editor {
  explicit Editor(const std::string& file) : history_file(file) {
    std::setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
    history = history_init();
    history_set(H_SETSIZE, kHistoryLines);
    history_set(H_SETUNIQUE, 1);
    if (!file.empty()) history_set(H_LOAD, file.c_str());
    line = el_init("foretoken", stdin, stdout, stderr);
    el_set(line, EL_CLIENTDATA, this);
    el_set(line, EL_PROMPT, &Editor::show_prompt);
    el_set(line, EL_EDITOR, "emacs");
    el_set(line, EL_HIST, ::history, history);
    el_set(line, EL_GETCFN, &read_character);
    el_source(line, nullptr);
  }

  ~Editor() {
    el_end(line);
    history_end(history);
  }

  static char* show_prompt(EditLine* line) {
    Editor* self = nullptr;
    el_get(line, EL_CLIENTDATA, &self);
    return self->prompt.data();
  }

  template <class T>
  void history_set(int what, T value) {
    HistEvent event;
    ::history(history, &event, what, value);
  }

  std::string history_file;
  std::string prompt;
  History* history = nullptr;
  EditLine* line = nullptr;
};

LineInput::LineInput(const std::string& history_file) {
  if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {
    editor_ = std::make_unique<Editor>(history_file);
  }
}

LineInput::~LineInput() = default;

LineInput::Read LineInput::next(const std::string& prompt, std::string* line) {
  if (editor_ == nullptr) return next_plain(line);
  editor_->prompt = prompt;
  int count = 0;
  const char* text = el_gets(editor_->line, &count);
  line->assign(text == nullptr ? "" : text, static_cast<size_t>(count > 0 ? count : 0));
  const bool complete = !line->empty() && line->back() == '\n';
  // A signal behind a complete line is for its answer.
  if (interrupt_flag().load() && !complete) {
    el_reset(editor_->line);
    return Read::kInterrupted;
  }
  if (complete) line->pop_back();
  return complete || !line->empty() ? Read::kLine : Read::kEnd;
}

LineInput::Read LineInput::next_plain(std::string* line) {
  while (true) {
    unsigned char byte = 0;
    const int count = read_byte(&byte);
    if (count < 0) return Read::kInterrupted;
    if (count == 0) break;
    if (byte != '\n') {
      rest_ += static_cast<char>(byte);
      continue;
    }
    *line = std::move(rest_);
    rest_.clear();
    if (!line->empty() && line->back() == '\r') line->pop_back();
    return Read::kLine;
  }
  *line = std::move(rest_);
  rest_.clear();
  return line->empty() ? Read::kEnd : Read::kLine;
}

void LineInput::remember(const std::string& text) {
  if (editor_ == nullptr || text.empty()) return;
  editor_->history_set(H_ENTER, text.c_str());
  if (editor_->history_file.empty()) return;
  const auto folder = std::filesystem::path(editor_->history_file).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  editor_->history_set(H_SAVE, editor_->history_file.c_str());
}

std::string default_history_file() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (state != nullptr && *state != '\0') {
    folder = state;
  } else if (home != nullptr && *home != '\0') {
    folder = std::filesystem::path(home) / ".local" / "state";
  } else {
    return {};
  }
  return (folder / "foretoken" / "chat_history").string();
}

}  // namespace foretoken
