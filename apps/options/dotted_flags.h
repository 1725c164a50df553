#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// As vLLM has it, "--flag.part value" or "--flag.part=value" sets a part of a flag whose value is
// JSON; parts may be nested ("--flag.a.b 1"). All of one flag become "--flag JSON" in the place of
// the first. A value is JSON where it can be read so, a number like 4k, or else a string; with "+"
// behind the part ("--flag.part+ a,b") it is a list of values that are appended. The error names
// what contradicts: a part that is given twice and differently, or beside a value that it is a part
// of, and a flag that is given as a whole too.
Result<std::vector<std::string>> fold_dotted_flags(const std::vector<std::string>& arguments);

}  // namespace foretoken
