#pragma once
#include <string>

#include "base/result.h"

namespace foretoken {

// FNV-1a as 16 hexadecimal digits: the same for a text in every build.
std::string text_hash(const std::string& text);

// Where a cache folder keeps what belongs to `key`, any text: one JSON file each, under the same
// name in every build. Empty: the folder is.
std::string cache_path(const std::string& folder, const std::string& key);

// Makes the folder of `path` and the file, which is there whole or not at all; one that is there is
// replaced. InvalidArgument or ResourceExhausted tells what the system says.
Status write_cache_file(const std::string& path, const std::string& text);

// Tells in the log how writing `path` ended. `what`: "step times", of which the next start `does`
// again without the file: "measures".
void tell_kept(const std::string& path, const Status& written, const char* what, const char* does);

// Tells in the log that a file which is there counts as none. `why` begins with its path; this run
// `does` it again: "measures".
void tell_passed_over(const Status& why, const char* what, const char* does);

}  // namespace foretoken
