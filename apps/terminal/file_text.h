#pragma once
#include <string>

#include "base/result.h"

namespace foretoken {

// The whole file, or stdin for "-", as plain_text of base/files/text_file.h has it; `path` as in
// base/files/local_path.h. A folder, an unreadable file or a device that never ends is an error
// that names it.
Result<std::string> read_input_file(const std::string& path);

}  // namespace foretoken
