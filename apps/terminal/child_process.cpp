#include "apps/terminal/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

namespace foretoken {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kKeptErrors = 4096;

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() { [[maybe_unused]] const int code = pipe2(ends.data(), O_CLOEXEC); }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int reader() const { return ends[0]; }
  void close_writer() {
    close(ends[1]);
    ends[1] = -1;
  }
};

// In the child. err: negative where stderr is shared.
[[noreturn]] void become(const std::vector<char*>& argv, bool own_group, int out, int err) {
  if (own_group) setpgid(0, 0);
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  if (err >= 0) dup2(err, STDERR_FILENO);
  execv(argv[0], argv.data());
  _exit(127);
}

// Reads what is there; false at the end of it.
bool read_some(int from, std::string& text) {
  std::array<char, 4096> buffer;
  const ssize_t count = read(from, buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  text.append(buffer.data(), static_cast<size_t>(count));
  return true;
}

// Milliseconds until then as poll takes them, -1 for ever, 0 where it is over.
int milliseconds_until(const std::optional<Clock::time_point>& end) {
  if (!end) return -1;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*end - Clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

// Until both pipes end or the time is over; false then.
bool collect(const Pipe& out, const Pipe& err, const std::optional<Clock::time_point>& end,
             ProcessResult& result) {
  std::array<pollfd, 2> fds{pollfd{out.reader(), POLLIN, 0}, pollfd{err.reader(), POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const int left = milliseconds_until(end);
    if (left == 0) return false;
    if (poll(fds.data(), fds.size(), left) <= 0) continue;
    if (fds[0].revents != 0 && !read_some(fds[0].fd, result.out)) fds[0].fd = -1;
    if (fds[1].revents != 0 && !read_some(fds[1].fd, result.err)) fds[1].fd = -1;
    if (result.err.size() > kKeptErrors) result.err.erase(0, result.err.size() - kKeptErrors);
  }
  return true;
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments,
                          const ProcessOptions& options) {
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv;
  for (std::string& each : copies) argv.push_back(each.data());
  argv.push_back(nullptr);
  Pipe out;
  Pipe err;
  ProcessResult result;
  const bool own_group = options.limit.has_value();
  const pid_t child = fork();
  if (child == 0) {
    become(argv, own_group, out.ends[1], options.shares_stderr ? -1 : err.ends[1]);
  }
  if (child < 0) return {ProcessEnd::kExit, 127, {}, "no process could be started"};
  if (own_group) setpgid(child, child);
  out.close_writer();
  err.close_writer();
  std::optional<Clock::time_point> end;
  if (options.limit) end = Clock::now() + *options.limit;
  const bool in_time = collect(out, err, end, result);
  if (!in_time) kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (own_group) kill(-child, SIGKILL);
  result.end = !in_time              ? ProcessEnd::kTime
               : WIFSIGNALED(status) ? ProcessEnd::kSignal
                                     : ProcessEnd::kExit;
  result.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

std::string sibling_program(const std::string& name) {
  return (std::filesystem::read_symlink(kThisProgram).parent_path() / name).string();
}

Result<std::string> run_this_program(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {kThisProgram};
  command.insert(command.end(), arguments.begin(), arguments.end());
  ProcessResult result = run_process(command, {.shares_stderr = true});
  if (result.end == ProcessEnd::kExit && result.code == 0) return std::move(result.out);
  if (!result.err.empty()) return internal_error(result.err);
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
