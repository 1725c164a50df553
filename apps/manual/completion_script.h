#pragma once
#include <string>

#include "apps/flags/flag_table.h"
#include "base/result.h"

namespace foretoken {

// A script that completes the commands, flags and listed values of `table`, and file names
// elsewhere. `shell`: bash, zsh or fish; others are InvalidArgument.
Result<std::string> completion_script(const std::string& shell, const CommandRow& table);

}  // namespace foretoken
