#pragma once
#include <foretoken/engine.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

struct BenchRun {
  double seconds = 0;
  RequestStats stats;                           // of all requests together
  std::vector<std::vector<int32_t>> token_ids;  // of each, all choices one after another
};

// Runs all requests, `max_concurrency` at one time (0: all at once); the first error of one ends
// it. Aborted after a signal. `on_progress`, which may be empty, hears how many are done at least
// 20 times a second.
Result<BenchRun> run_bench_requests(Engine& engine, const std::vector<Request>& requests,
                                    const std::function<void(size_t num_done)>& on_progress,
                                    size_t max_concurrency = 0);

// {"drafter", "rejection_sample_method", "steps", "drafts", "drafted_tokens", "accepted_tokens",
// "output_tokens", "acceptance_rate", "mean_acceptance_length"} and, by position in the draft,
// {"drafted", "accepted", "acceptance"}_by_position.
nlohmann::ordered_json drafts_json(const RequestStats& stats, const EngineInfo& info);

// That prompts and outputs of so many tokens fit into the engine's longest sequence.
Status check_bench_lengths(int input_len, int output_len, const EngineInfo& info);
// That so many sequences run all at once.
Status check_bench_batch(int batch_size, const EngineInfo& info);

// What drafting did, as lines; that acceptance is synthetic too.
std::string bench_drafts_text(const RequestStats& stats, const EngineInfo& info);

// --output-json, a file in a folder that exists.
void add_output_json(CLI::App& command, std::string& file);
Status write_bench_json(const nlohmann::ordered_json& object, const std::string& path);
// Writes the file that `flag`, which the message names, asks for.
Status write_bench_text(const std::string& text, const std::string& path, const char* flag);

// The exit code of a benchmark that ended so, with its message.
int bench_exit_code(const Status& status);

}  // namespace foretoken
