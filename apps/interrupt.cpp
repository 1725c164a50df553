#include "interrupt.h"

#include <signal.h>
#include <unistd.h>

namespace foretoken {
namespace {

std::atomic<bool> flag{false};
std::atomic<int> first_signal{SIGINT};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

extern "C" void on_interrupt(int number) {
  if (flag.exchange(true)) _exit(128 + number);
  first_signal.store(number);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

const std::atomic<bool>& interrupt_flag() { return flag; }

int interrupt_exit_code() { return 128 + first_signal.load(); }

}  // namespace foretoken
