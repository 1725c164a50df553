#pragma once
#include <CLI/CLI.hpp>

namespace foretoken {

// As CLI::Validator: refuses a file to be written whose folder does not exist, so that nothing is
// measured for nothing.
CLI::Validator file_in_a_folder();

}  // namespace foretoken
