#include "report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "interrupt.h"

namespace foretoken {
namespace {

double ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

}  // namespace

void report_error(const std::string& message) {
  std::string line = "foretoken: error: " + message;
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  std::fflush(stdout);
  std::fputs(line.c_str(), stderr);
}

int report_interrupt(const std::string& what) {
  std::fflush(stdout);
  std::fputs(("foretoken: interrupted " + what + "\n").c_str(), stderr);
  return interrupt_exit_code();
}

double mebibytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::string engine_banner(const EngineInfo& info, const std::string& model) {
  std::string folder = std::filesystem::weakly_canonical(model).filename().string();
  std::string line = fmt::format(
      "{}; model {} ({}, {}); attention {}; drafter {}; batch-invariant {}; {} KV blocks of {}",
      info.device, folder, info.architecture, info.dtype, info.attention_backend,
      info.drafter.empty() ? "none" : info.drafter, info.batch_invariant ? "on" : "off",
      info.num_blocks, info.block_size);
  if (!info.drafter.empty()) {
    line += fmt::format("; n-gram memory beyond KV cache, token pages and block tables: {:.2f} MiB",
                        mebibytes(info.drafter_bytes));
  }
  return line;
}

std::string throughput_line(int64_t num_tokens, double seconds) {
  const double rate = seconds > 0 ? static_cast<double>(num_tokens) / seconds : 0.0;
  return fmt::format("{} tokens in {:.2f} s, {:.1f} tokens/s", num_tokens, seconds, rate);
}

double acceptance_rate(const RequestStats& stats) {
  return ratio(stats.num_accepted_tokens, stats.num_draft_tokens);
}

double mean_acceptance_length(const RequestStats& stats) {
  return 1 + ratio(stats.num_accepted_tokens, stats.num_drafts);
}

std::string acceptance_line(const RequestStats& stats) {
  return fmt::format("draft acceptance rate {:.1f} % ({} of {} drafted tokens)",
                     100 * acceptance_rate(stats), stats.num_accepted_tokens,
                     stats.num_draft_tokens);
}

std::string draft_line(const RequestStats& stats) {
  return fmt::format(
      "drafts in {:.0f} % of steps, mean acceptance length {:.1f} (1 + accepted / drafts), "
      "{:.0f} % fewer steps",
      100 * ratio(stats.num_drafts, stats.num_steps), mean_acceptance_length(stats),
      100 * ratio(stats.num_accepted_tokens, stats.num_output_tokens));
}

}  // namespace foretoken
