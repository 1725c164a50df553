#pragma once
#include <atomic>

namespace foretoken {

// From now on the first SIGINT or SIGTERM sets interrupt_flag(); a second one ends the process at
// once. To be called on the main thread, once.
void catch_interrupts();

// Set by the first signal. Lives as long as the process.
const std::atomic<bool>& interrupt_flag();

// 130 for SIGINT, 143 for SIGTERM.
int interrupt_exit_code();

}  // namespace foretoken
