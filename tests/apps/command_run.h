#pragma once
#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/scratch_folder.h"

namespace foretoken {

// What a finished command left. `exit_code` is -1 when a signal ended it or it did not end in time.
struct CommandResult {
  int exit_code = -1;
  int signal = 0;
  std::string out;
  std::string err;
  // Lines of `err` that start with "foretoken: error: ".
  std::vector<std::string> errors() const;
  // Lines of `out`, each as JSON.
  std::vector<nlohmann::json> json_lines() const;
  std::string last_line_of_out() const;
};

// How a command is started beside its arguments.
struct CommandSetting {
  std::string input;                     // stdin, which then ends; empty: nothing to read
  bool terminal = false;                 // stdin, stdout and stderr are one pseudo terminal
  std::vector<std::string> environment;  // more variables, "NAME=value"
};

// The foretoken command of this build, with its output caught. One thread.
class Command {
 public:
  explicit Command(const std::vector<std::string>& arguments, const CommandSetting& setting = {});
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Reads until stdout or stderr holds `text`; false when the command
  // ended or five minutes passed before.
  bool wait_for(const std::string& text);
  // After SIGSTOP it stands still when this returns.
  void send_signal(int number);
  // Types on the pseudo terminal.
  void type(const std::string& text);
  // Reads to the end; ends the command itself after 15 minutes.
  CommandResult finish();

 private:
  void start_on_pipes(const std::string& input, char* const* argv);
  void start_on_terminal(char* const* argv);
  bool read_some(int timeout_ms);

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  CommandResult result_;
};

CommandResult run_command(const std::vector<std::string>& arguments,
                          const CommandSetting& setting = {});

// The bundled model's folder.
std::filesystem::path bundled_model();

// Copies it into the folder and returns its place there.
std::filesystem::path copy_model(const test::ScratchFolder& folder);

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& text);

}  // namespace foretoken
