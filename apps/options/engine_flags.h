#pragma once
#include <CLI/CLI.hpp>
#include <vector>

#include "config/engine_fields.h"

namespace foretoken {

// The flag of a row: its name, help, default, and the range or the choices that it is held to. It
// writes into `config`, which must outlive the parsing. `is_argument`: a bare argument is its
// value.
CLI::Option* add_engine_flag(CLI::App& app, const EngineField& field, EngineConfig& config,
                             bool is_argument = false);

// The rows that the command line may set.
std::vector<const EngineField*> command_line_fields();

}  // namespace foretoken
