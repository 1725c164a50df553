#pragma once
#include <cstdint>
#include <string>

namespace foretoken {

// What the system allows this process, in bytes; 0: anything.
struct ProcessLimits {
  uint64_t stack_bytes = 0;   // of a thread (ulimit -s)
  uint64_t memory_bytes = 0;  // of address space (ulimit -v)
};

// Those of now.
ProcessLimits process_limits();

// Which of them ends every run before it could say why, and how to raise it; empty: none.
std::string limit_fault(const ProcessLimits& limits);

}  // namespace foretoken
