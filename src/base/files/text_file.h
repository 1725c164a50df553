#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foretoken {

// What a file that was fetched wrongly holds in place of itself, by its first bytes, as the end of
// a sentence with the remedy: a pointer of Git LFS or a web page. Empty: neither.
std::string what_was_fetched(std::string_view front);

// What was read from `name`, a file or stdin, without the byte order mark that editors on Windows
// begin a text with, which is no part of it. InvalidArgument for UTF-16; the message names it.
Result<std::string> plain_text(std::string content, const std::string& name);

// The whole content of a file, as plain_text has it. kNotFound when it is missing or unreadable,
// InvalidArgument for what was fetched in its place and for UTF-16; the message names it.
Result<std::string> read_text_file(const std::filesystem::path& file);

}  // namespace foretoken
