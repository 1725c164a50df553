#pragma once
#include <atomic>

namespace foretoken {

// From now on SIGINT and SIGTERM set interrupt_flag(); the `num_to_end`-th one without
// clear_interrupt() between ends the process at once, where those within half a second count as
// one. To be called on the main thread, once.
void catch_interrupts(int num_to_end = 2);

// Set by the first signal. Lives as long as the process.
const std::atomic<bool>& interrupt_flag();

// Forgets the signals so far: the work they were meant for has ended.
void clear_interrupt();

// SIGINT or SIGTERM, whichever came last.
int interrupt_signal();

// 130 for SIGINT, 143 for SIGTERM.
int interrupt_exit_code();

}  // namespace foretoken
