#pragma once
#include <foretoken/engine.h>

#include <array>
#include <string>
#include <vector>

namespace foretoken {

inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;

// Writes "foretoken: error: <message>" as one line to stderr.
void report_error(const std::string& message);

// Writes "foretoken: interrupted <what>" to stderr and returns the exit code for it.
int report_interrupt(const std::string& what);

// One line about a started engine: device, model, dtype, backend, drafter and memory.
std::string engine_banner(const EngineInfo& info, const std::string& model);

// "128 tokens in 1.23 s, 104.1 tokens/s".
std::string throughput_line(int64_t num_tokens, double seconds);

// "drafts in 48 % of steps, mean acceptance length 2.1 (1 + accepted / drafts), 34 % fewer steps".
std::string draft_line(const RequestStats& stats);

// What a step costs the engine thread, and how long the device waits between steps: "host 38 us a
// step (...); device 4.21 ms a step, idle between steps 2.1 us (...)"; with several ranks on a CPU
// also what rank 0 spends in collectives. Empty before the second step.
std::string timing_line(const StepTiming& timing);

// "draft acceptance rate 54.2 % (123 of 227 drafted tokens)".
std::string acceptance_line(const RequestStats& stats);

// By position in the draft, how often it was accepted where it was drafted: "0.812, 0.604". Empty
// when nothing was drafted.
std::string position_rates_text(const RequestStats& stats);
// The same as numbers, as many as there are positions that were drafted.
std::vector<double> position_rates(const RequestStats& stats);

// Counts by position up to the last one that was used.
std::vector<int64_t> position_counts(const std::array<int64_t, kMaxSpeculativeTokens>& counts);

// Lines about each drafter that drafted: acceptance, mean length, rates by position; and that the
// text is not the model's where acceptance is synthetic. Each ends with a newline.
std::string drafter_lines(const EngineStats& stats, const EngineInfo& info);
// That the text is not the model's, as a line, where acceptance is synthetic; otherwise empty.
std::string synthetic_note(const EngineInfo& info);

// Accepted of drafted tokens, in [0, 1].
double acceptance_rate(const RequestStats& stats);
// 1 + accepted tokens / drafts.
double mean_acceptance_length(const RequestStats& stats);

double mebibytes(int64_t bytes);

}  // namespace foretoken
