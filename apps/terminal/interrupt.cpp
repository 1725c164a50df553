#include "apps/terminal/interrupt.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace foretoken {
namespace {

std::atomic<bool> interrupted{false};
std::atomic<int> num_signals{0};
std::atomic<int> max_signals{2};
std::atomic<int> last_signal{SIGINT};
std::atomic<int64_t> last_counted_ns{0};  // 0: none is counted
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

// Supervisors signal a process and then its group, terminals the group while a launcher passes the
// signal on: signals so close together are one wish.
constexpr int64_t kOneWishNs = 500'000'000;

// As clock.h's, of what a handler may call.
int64_t signal_time_ns() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Whether no signal before it is the same wish. Two threads may each be handling one.
bool is_new_wish() {
  const int64_t now = signal_time_ns();
  int64_t last = last_counted_ns.load();
  do {
    if (last != 0 && now - last < kOneWishNs) return false;
  } while (!last_counted_ns.compare_exchange_weak(last, now));
  return true;
}

extern "C" void on_interrupt(int number) {
  last_signal.store(number);
  if (!is_new_wish()) return;
  if (num_signals.fetch_add(1) + 1 >= max_signals.load()) _exit(128 + number);
  interrupted.store(true);
}

}  // namespace

void catch_interrupts(int num_to_end) {
  max_signals.store(num_to_end);
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

const std::atomic<bool>& interrupt_flag() { return interrupted; }

void clear_interrupt() {
  num_signals.store(0);
  last_counted_ns.store(0);
  interrupted.store(false);
}

int interrupt_signal() { return last_signal.load(); }

int interrupt_exit_code() { return 128 + last_signal.load(); }

}  // namespace foretoken
