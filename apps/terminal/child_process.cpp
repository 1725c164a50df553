#include "apps/terminal/child_process.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

extern char** environ;

namespace foretoken {
namespace {

constexpr const char* kThisProgram = "/proc/self/exe";

Status cannot_start(int error) {
  return internal_error(std::string("cannot start a process of this program: ") +
                        std::strerror(error));
}

// Starts the program with its stdout at `write_end`.
int spawn(const std::vector<std::string>& arguments, int read_end, int write_end, pid_t* pid) {
  std::vector<char*> argv;
  argv.push_back(const_cast<char*>("foretoken"));
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, write_end, STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, read_end);
  posix_spawn_file_actions_addclose(&actions, write_end);
  const int error = posix_spawn(pid, kThisProgram, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

std::string read_all(int descriptor) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(descriptor, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace

Result<std::string> run_this_program(const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe(ends) != 0) return cannot_start(errno);
  pid_t pid = 0;
  const int error = spawn(arguments, ends[0], ends[1], &pid);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return cannot_start(error);
  }
  std::string text = read_all(ends[0]);
  close(ends[0]);
  int state = 0;
  while (waitpid(pid, &state, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return text;
  return internal_error("a process of this program failed; its message is above");
}

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  if (!arguments.empty()) arguments.erase(arguments.begin());
  return arguments;
}

}  // namespace foretoken
