#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// Replaces "--config FILE" among the arguments of a subcommand by the flags of that file, a YAML
// file as vLLM's --config takes it; those that the command line has too are left out.
// "max-model-len: 4096" becomes {"--max-model-len=4096"}; true and false become "--name" and
// "--no-name"; a list, in brackets or a line for each entry, becomes several values; null is none.
// Values that stand further in become parts of the name above them: "--speculative-config.method=
// ngram". A text may have several lines behind "|". Names may have underscores. Values of JSON stay
// as they are, and a file may be one JSON object. Messages name the file and the line.
Result<std::vector<std::string>> expand_config_file(std::vector<std::string> arguments);

}  // namespace foretoken
