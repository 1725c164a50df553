#pragma once
#include <memory>
#include <string>

namespace foretoken {

// Lines from stdin: with editing and a history on a terminal, as they are otherwise. One object,
// one thread.
class LineInput {
 public:
  enum class Read { kLine, kEnd, kInterrupted };

  // `history_file` is read and kept up to date; empty: no history between sessions.
  explicit LineInput(const std::string& history_file);
  ~LineInput();

  bool terminal() const { return editor_ != nullptr; }

  // The next line without its end. kInterrupted when interrupt_flag() was set meanwhile; `prompt`
  // is shown on a terminal only.
  Read next(const std::string& prompt, std::string* line);

  // Keeps a line, or several as one, in the history of a terminal.
  void remember(const std::string& text);

 private:
  struct Editor;

  Read next_plain(std::string* line);
  void take_rest(std::string* line);

  std::unique_ptr<Editor> editor_;  // null: no terminal
  std::string rest_;                // read, but not yet given
  bool begun_ = false;              // a line was given that is not from a terminal
};

// Where the history of `foretoken chat` is kept: in XDG_STATE_HOME, else in ~/.local/state. Empty
// when neither is known.
std::string default_history_file();

}  // namespace foretoken
