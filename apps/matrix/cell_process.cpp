#include "apps/matrix/cell_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

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

// In the child: a group of its own, so that all it starts can be killed together.
[[noreturn]] void become(const std::vector<char*>& argv, int out, int err) {
  setpgid(0, 0);
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execv(argv[0], argv.data());
  _exit(127);
}

// Reads what is there; false at the end of it.
bool read_some(int from, std::string& text) {
  std::array<char, 4096> buffer;
  const ssize_t count = read(from, buffer.data(), buffer.size());
  if (count <= 0) return false;
  text.append(buffer.data(), static_cast<size_t>(count));
  return true;
}

// Until both pipes end or the time is over; false then.
bool collect(const Pipe& out, const Pipe& err, Clock::time_point end, ProcessResult& result) {
  std::array<pollfd, 2> fds{pollfd{out.reader(), POLLIN, 0}, pollfd{err.reader(), POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return false;
    if (poll(fds.data(), fds.size(), static_cast<int>(left.count())) <= 0) continue;
    if (fds[0].revents != 0 && !read_some(fds[0].fd, result.out)) fds[0].fd = -1;
    if (fds[1].revents != 0 && !read_some(fds[1].fd, result.err)) fds[1].fd = -1;
    if (result.err.size() > kKeptErrors) result.err.erase(0, result.err.size() - kKeptErrors);
  }
  return true;
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments, std::chrono::seconds limit) {
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv;
  for (std::string& each : copies) argv.push_back(each.data());
  argv.push_back(nullptr);
  Pipe out;
  Pipe err;
  ProcessResult result;
  const pid_t child = fork();
  if (child == 0) become(argv, out.ends[1], err.ends[1]);
  if (child < 0) return {ProcessEnd::kExit, 127, {}, "no process could be started"};
  setpgid(child, child);
  out.close_writer();
  err.close_writer();
  const bool in_time = collect(out, err, Clock::now() + limit, result);
  if (!in_time) kill(-child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  kill(-child, SIGKILL);
  result.end = !in_time              ? ProcessEnd::kTime
               : WIFSIGNALED(status) ? ProcessEnd::kSignal
                                     : ProcessEnd::kExit;
  result.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string sibling_program(const std::string& name) {
  return (std::filesystem::path(own_program()).parent_path() / name).string();
}

}  // namespace foretoken
