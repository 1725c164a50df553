#include "apps/chat/line_input.h"

#include <histedit.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "apps/chat/terminal_input.h"
#include "apps/terminal/interrupt.h"

namespace foretoken {
namespace {

constexpr int kHistoryLines = 1000;

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
    // libedit's own reader would swallow a signal.
    el_set(line, EL_GETCFN, &Editor::read_character);
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

  static int read_character(EditLine* line, wchar_t* character) {
    Editor* self = nullptr;
    el_get(line, EL_CLIENTDATA, &self);
    return self->input.next(character);
  }

  template <class T>
  void history_set(int what, T value) {
    HistEvent event;
    ::history(history, &event, what, value);
  }

  std::string history_file;
  std::string prompt;
  TerminalInput input;
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
  std::fputs(kMarkPastes, stdout);
  const char* text = el_gets(editor_->line, &count);
  std::fputs(kMarkNoPastes, stdout);
  std::fflush(stdout);
  line->assign(text == nullptr ? "" : text, static_cast<size_t>(count > 0 ? count : 0));
  const bool complete = !line->empty() && line->back() == '\n';
  // A signal behind a complete line is for its answer.
  if (interrupt_flag().load() && !complete) {
    el_reset(editor_->line);
    return Read::kInterrupted;
  }
  if (complete) line->pop_back();
  *line = editor_->input.with_line_breaks(std::move(*line));
  return complete || !line->empty() ? Read::kLine : Read::kEnd;
}

LineInput::Read LineInput::next_plain(std::string* line) {
  while (true) {
    unsigned char byte = 0;
    const int count = read_stdin_byte(&byte);
    if (count < 0) return Read::kInterrupted;
    if (count == 0) break;
    if (byte != '\n') {
      rest_ += static_cast<char>(byte);
      continue;
    }
    take_rest(line);
    if (!line->empty() && line->back() == '\r') line->pop_back();
    return Read::kLine;
  }
  take_rest(line);
  return line->empty() ? Read::kEnd : Read::kLine;
}

void LineInput::take_rest(std::string* line) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  *line = std::move(rest_);
  rest_.clear();
  const bool is_first = !std::exchange(begun_, true);
  if (is_first && line->starts_with(kByteOrderMark)) line->erase(0, kByteOrderMark.size());
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
