#pragma once
#include <foretoken/request.h>

#include <CLI/CLI.hpp>

namespace foretoken {

// Adds flags for all fields of `sampling`, which must outlive the parsing.
void add_sampling_flags(CLI::App& app, SamplingParams& sampling);

}  // namespace foretoken
