#pragma once
#include <foretoken/engine.h>

#include <string>

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

// "draft acceptance rate 54.2 % (123 of 227 drafted tokens)".
std::string acceptance_line(const RequestStats& stats);

// Accepted of drafted tokens, in [0, 1].
double acceptance_rate(const RequestStats& stats);
// 1 + accepted tokens / drafts.
double mean_acceptance_length(const RequestStats& stats);

double mebibytes(int64_t bytes);

}  // namespace foretoken
