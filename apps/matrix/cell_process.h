#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace foretoken {

enum class ProcessEnd { kExit, kSignal, kTime };

struct ProcessResult {
  ProcessEnd end = ProcessEnd::kExit;
  int code = 0;  // the exit code, or the signal's number
  std::string out;
  std::string err;  // its last 4 KiB
};

// Runs a program (arguments[0]: its file) and waits at most so long; then it and what it started
// are killed. A program that cannot be started ends with code 127. Not for programs that want
// stdin.
ProcessResult run_process(const std::vector<std::string>& arguments, std::chrono::seconds limit);

// The file of this program, and of one beside it.
std::string own_program();
std::string sibling_program(const std::string& name);

}  // namespace foretoken
