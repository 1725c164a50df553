#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// Runs this program with other arguments, stderr shared, and returns what it printed to stdout.
// Internal when it cannot be started or does not end with exit code 0.
Result<std::string> run_this_program(const std::vector<std::string>& arguments);

// The arguments that this process was started with, without the program's name.
std::vector<std::string> own_arguments();

}  // namespace foretoken
