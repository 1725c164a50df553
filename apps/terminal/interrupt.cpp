#include "apps/terminal/interrupt.h"

#include <signal.h>
#include <unistd.h>

namespace foretoken {
namespace {

std::atomic<bool> interrupted{false};
std::atomic<int> num_signals{0};
std::atomic<int> max_signals{2};
std::atomic<int> last_signal{SIGINT};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

extern "C" void on_interrupt(int number) {
  last_signal.store(number);
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
  interrupted.store(false);
}

int interrupt_signal() { return last_signal.load(); }

int interrupt_exit_code() { return 128 + last_signal.load(); }

}  // namespace foretoken
