#pragma once
#include <string>

namespace foretoken {

// A path as people write it where no shell changes it (behind an equals sign, in a file, in
// quotes), as the system has it: a leading ~/ stands for HOME, and file:///x for /x. What exists
// under the very name, and all else, stays as it is.
std::string local_path(const std::string& given);

}  // namespace foretoken
