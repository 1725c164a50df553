#include "group/child_ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/thread_role.h"
#include "group/launch.h"

extern char** environ;

namespace foretoken::group {
namespace {

using namespace std::chrono_literals;
constexpr auto kTimeToEnd = 1s;
constexpr auto kBetweenLooks = 20ms;

std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

bool is_of_children(const std::string& variable) {
  return variable.rfind("FORETOKEN_RANK=", 0) == 0 || variable.rfind("FORETOKEN_MASTER=", 0) == 0 ||
         variable.rfind("FORETOKEN_FIRST_DEVICE=", 0) == 0;
}

// This process's environment with a child's own variables.
std::vector<std::string> environment_of(const ChildRank& child) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!is_of_children(*variable)) variables.emplace_back(*variable);
  }
  variables.push_back(fmt::format("{}={}", kChildRankVariable, child.rank));
  variables.push_back(
      fmt::format("{}={}:{}", kChildMasterVariable, child.master_host, child.master_port));
  variables.push_back(fmt::format("{}={}", kChildDeviceVariable, child.first_device));
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void become(char* const* argv, char* const* variables, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  if (nothing > STDERR_FILENO) close(nothing);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve("/proc/self/exe", argv, variables);
  _exit(127);
}

std::string describe_end(int state) {
  if (WIFSIGNALED(state)) {
    return fmt::format("was ended by signal {} ({})", WTERMSIG(state), strsignal(WTERMSIG(state)));
  }
  return fmt::format("ended with exit code {}", WEXITSTATUS(state));
}

class Children final : public ChildRanks {
 public:
  Children(std::vector<ChildRank> wanted, Listener listener)
      : wanted_(std::move(wanted)), listener_(std::move(listener)) {}

  ~Children() override {
    expected_.store(true);
    stopping_.store(true);
    if (thread_.joinable()) thread_.join();
  }

  // Children die with the thread that forked them, so that thread lives as long as this object.
  Status launch() {
    std::unique_lock lock(mutex_);
    thread_ = std::thread([this] { run(); });
    started_.wait(lock, [&] { return start_status_.has_value(); });
    return *start_status_;
  }

  std::vector<pid_t> pids() const override {
    const std::lock_guard lock(mutex_);
    std::vector<pid_t> pids;
    for (const Child& child : children_) pids.push_back(child.pid);
    return pids;
  }

 private:
  struct Child {
    int rank = 0;
    pid_t pid = 0;
    bool alive = true;
  };

  void run() {
    set_thread_role(ThreadRole::kOther, "ft-children");
    Status status = fork_all();
    const bool started = status.ok();
    {
      const std::lock_guard lock(mutex_);
      start_status_ = std::move(status);
    }
    started_.notify_all();
    while (started && !stopping_.load()) {
      look();
      std::this_thread::sleep_for(kBetweenLooks);
    }
    end_all();
  }

  Status fork_all() {
    std::vector<std::string> command = own_command();
    const std::vector<char*> argv = pointers(command);
    const pid_t parent = getpid();
    for (const ChildRank& wanted : wanted_) {
      std::vector<std::string> texts = environment_of(wanted);
      const std::vector<char*> variables = pointers(texts);
      const pid_t pid = fork();
      if (pid == 0) become(argv.data(), variables.data(), parent);
      if (pid < 0) {
        return internal_error(fmt::format("cannot start the process of rank {}: {}", wanted.rank,
                                          std::strerror(errno)));
      }
      const std::lock_guard lock(mutex_);
      children_.push_back({wanted.rank, pid, true});
    }
    return {};
  }

  void look() {
    for (Child& child : children_) {
      int state = 0;
      if (!child.alive || waitpid(child.pid, &state, WNOHANG) != child.pid) continue;
      child.alive = false;
      // One that ends well does so because the group has ended.
      if (expected_.load() || (WIFEXITED(state) && WEXITSTATUS(state) == 0)) continue;
      listener_(internal_error(fmt::format("rank {} (process {}) {}; its messages are above",
                                           child.rank, child.pid, describe_end(state))));
    }
  }

  void end_all() {
    const auto signal_all = [&](int signal) {
      for (const Child& child : children_) {
        if (child.alive) kill(child.pid, signal);
      }
    };
    const auto any_alive = [&] {
      return std::any_of(children_.begin(), children_.end(),
                         [](const Child& child) { return child.alive; });
    };
    expected_.store(true);
    signal_all(SIGTERM);
    const auto deadline = std::chrono::steady_clock::now() + kTimeToEnd;
    for (look(); any_alive() && std::chrono::steady_clock::now() < deadline; look()) {
      std::this_thread::sleep_for(kBetweenLooks);
    }
    signal_all(SIGKILL);
    for (look(); any_alive(); look()) std::this_thread::sleep_for(kBetweenLooks);
  }

  const std::vector<ChildRank> wanted_;
  const Listener listener_;
  mutable std::mutex mutex_;
  std::condition_variable started_;
  std::optional<Status> start_status_;
  std::vector<Child> children_;  // grows under the lock, by the thread that reads it without
  std::atomic<bool> expected_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<ChildRanks>> ChildRanks::start(const std::vector<ChildRank>& children,
                                                      Listener listener) {
  auto started = std::make_unique<Children>(children, std::move(listener));
  FT_RETURN_IF_ERROR(started->launch());
  return std::unique_ptr<ChildRanks>(std::move(started));
}

}  // namespace foretoken::group
