#include "apps/command_run.h"
#include "support/folders.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using std::chrono::steady_clock;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Closes the descriptor at its end.
void read_into(int* descriptor, std::string* text) {
  char buffer[65536];
  const ssize_t count = read(*descriptor, buffer, sizeof(buffer));
  if (count > 0) {
    text->append(buffer, static_cast<size_t>(count));
  } else {
    close(*descriptor);
    *descriptor = -1;
  }
}

}  // namespace

std::vector<std::string> CommandResult::errors() const {
  const std::string start = "foretoken: error: ";
  std::vector<std::string> found;
  for (const std::string& line : lines_of(err)) {
    if (line.rfind(start, 0) == 0) found.push_back(line.substr(start.size()));
  }
  return found;
}

std::vector<nlohmann::json> CommandResult::json_lines() const {
  std::vector<nlohmann::json> values;
  for (const std::string& line : lines_of(out)) values.push_back(nlohmann::json::parse(line));
  return values;
}

std::string CommandResult::last_line_of_out() const {
  const std::vector<std::string> lines = lines_of(out);
  return lines.empty() ? "" : lines.back();
}

Command::Command(const std::vector<std::string>& arguments, const CommandSetting& setting) {
  const std::string program = std::string(foretoken::kBinaryFolder) + "/foretoken";
  std::vector<char*> argv{const_cast<char*>("env")};
  for (const std::string& entry : setting.environment) {
    argv.push_back(const_cast<char*>(entry.c_str()));
  }
  argv.push_back(const_cast<char*>(program.c_str()));
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  if (setting.terminal) {
    start_on_terminal(argv.data());
  } else {
    start_on_pipes(setting.input, argv.data());
  }
}

// What goes in is written to a file first, so that no pipe can fill up.
void Command::start_on_pipes(const std::string& input, char* const* argv) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return;
  const int in = memfd_create("input", MFD_CLOEXEC);
  const bool filled = write(in, input.data(), input.size()) == static_cast<ssize_t>(input.size());
  lseek(in, 0, SEEK_SET);
  pid_ = filled ? fork() : -1;
  if (pid_ == 0) {
    dup2(in, STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    execv("/usr/bin/env", argv);
    _exit(127);
  }
  close(in);
  close(out[1]);
  close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

void Command::start_on_terminal(char* const* argv) {
  winsize size = {};
  size.ws_row = 40;
  size.ws_col = 200;
  pid_ = forkpty(&out_, nullptr, nullptr, &size);
  if (pid_ != 0) return;
  execv("/usr/bin/env", argv);
  _exit(127);
}

void Command::type(const std::string& text) {
  if (write(out_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    ADD_FAILURE() << "the terminal took no input";
  }
}

Command::~Command() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) close(out_);
  if (err_ >= 0) close(err_);
}

bool Command::read_some(int timeout_ms) {
  pollfd polled[] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  poll(polled, 2, timeout_ms);
  if (polled[0].revents != 0) read_into(&out_, &result_.out);
  if (polled[1].revents != 0) read_into(&err_, &result_.err);
  return out_ >= 0 || err_ >= 0;
}

bool Command::wait_for(const std::string& text) {
  const auto deadline = steady_clock::now() + seconds(300);
  const auto there = [&] { return (result_.out + result_.err).find(text) != std::string::npos; };
  while (!there() && steady_clock::now() < deadline) {
    if (!read_some(100)) break;
  }
  return there();
}

void Command::send_signal(int number) {
  kill(pid_, number);
  if (number == SIGSTOP) waitpid(pid_, nullptr, WUNTRACED);
}

CommandResult Command::finish() {
  const auto deadline = steady_clock::now() + seconds(900);
  while (read_some(100)) {
    if (steady_clock::now() > deadline) kill(pid_, SIGKILL);
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  if (WIFEXITED(status)) result_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result_.signal = WTERMSIG(status);
  return result_;
}

CommandResult run_command(const std::vector<std::string>& arguments,
                          const CommandSetting& setting) {
  return Command(arguments, setting).finish();
}

fs::path bundled_model() { return fs::path(foretoken::kSourceFolder) / "models" / "foretoken-7m"; }

fs::path copy_model(const test::ScratchFolder& folder) {
  fs::path copy = folder.file("model");
  fs::copy(bundled_model(), copy, fs::copy_options::recursive);
  return copy;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace foretoken
