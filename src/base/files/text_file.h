#pragma once
#include <filesystem>
#include <string>

#include "base/result.h"

namespace foretoken {

// The whole content of a file. kNotFound when it is missing or unreadable; the message names it.
Result<std::string> read_text_file(const std::filesystem::path& file);

}  // namespace foretoken
