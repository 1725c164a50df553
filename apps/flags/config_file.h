#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// Flags out of `text`, a flat YAML file as vLLM's --config takes it: "max-model-len: 4096" becomes
// {"--max-model-len", "4096"}; true and false become "--name" and "--no-name"; a list, in brackets
// or a line for each entry, becomes several values. Names may have underscores. Values of JSON stay
// as they are. `name` (the file's) starts each message, with the line.
Result<std::vector<std::string>> parse_config_file(const std::string& text,
                                                   const std::string& name);

// Replaces "--config FILE" among the arguments of a subcommand by the flags of that file; those
// that the command line has too are left out.
Result<std::vector<std::string>> expand_config_file(std::vector<std::string> arguments);

}  // namespace foretoken
