#pragma once
#include <string>

#include "base/result.h"

namespace foretoken {

// The whole file, or stdin for "-". A folder, an unreadable file or a device that never
// ends is an error that names it.
Result<std::string> read_input_file(const std::string& path);

}  // namespace foretoken
