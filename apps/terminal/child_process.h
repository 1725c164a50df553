#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

enum class ProcessEnd { kExit, kSignal, kTime };

struct ProcessResult {
  ProcessEnd end = ProcessEnd::kExit;
  int code = 0;  // the exit code, or the signal's number
  std::string out;
  std::string err;  // its last 4 KiB
};

struct ProcessOptions {
  // After it the process and what it started are killed: it has a group of its own then, which
  // signals of the terminal do not reach. None: it may take any time.
  std::optional<std::chrono::seconds> limit = {};
  bool shares_stderr = false;  // else what it writes there is in the result
};

// Runs a program (arguments[0]: its file), which reads nothing, and waits for it. A program that
// cannot be started ends with code 127.
ProcessResult run_process(const std::vector<std::string>& arguments, const ProcessOptions& options);

// The file of this program, as it was started, and of one beside it.
inline constexpr const char* kThisProgram = "/proc/self/exe";
std::string sibling_program(const std::string& name);

// Runs this program with other arguments, stderr shared, and returns what it printed to stdout.
// Internal when it cannot be started or does not end with exit code 0.
Result<std::string> run_this_program(const std::vector<std::string>& arguments);

// The arguments that this process was started with, without the program's name.
std::vector<std::string> own_arguments();

}  // namespace foretoken
