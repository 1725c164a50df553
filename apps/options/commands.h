#pragma once
#include <CLI/CLI.hpp>
#include <functional>

namespace foretoken {

// Each adds its subcommand to `app`. When the command line names it, `*run` is set to the function
// that does the work and returns the exit code.
void add_generate_command(CLI::App& app, std::function<int()>* run);
void add_chat_command(CLI::App& app, std::function<int()>* run);
void add_embed_command(CLI::App& app, std::function<int()>* run);
void add_serve_command(CLI::App& app, std::function<int()>* run);
void add_run_batch_command(CLI::App& app, std::function<int()>* run);
void add_bench_command(CLI::App& app, std::function<int()>* run);
void add_inspect_command(CLI::App& app, std::function<int()>* run);
void add_download_command(CLI::App& app, std::function<int()>* run);
void add_convert_command(CLI::App& app, std::function<int()>* run);
void add_matrix_command(CLI::App& app, std::function<int()>* run);
void add_tune_command(CLI::App& app, std::function<int()>* run);

// The hidden commands "man", "completion", "model-names", "foreign-flags" and "fields", which print
// what `app` can do, and with which models. `app` must outlive the run.
void add_manual_commands(CLI::App& app, std::function<int()>* run);

}  // namespace foretoken
