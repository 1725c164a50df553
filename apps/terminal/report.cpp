#include "apps/terminal/report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "apps/terminal/interrupt.h"

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
  if (info.num_engines > 1 || info.ranks_per_engine > 1) {
    line += fmt::format("; {} engines of {} ranks", info.num_engines, info.ranks_per_engine);
  }
  line += "; graphs " + info.cudagraph_mode;
  if (info.num_graphs > 0) {
    line += fmt::format(", {} made in {:.2f} s", info.num_graphs, info.graph_seconds);
  }
  if (!info.drafter.empty()) {
    line += fmt::format(
        "; drafter memory beyond KV cache, token pages and block tables: {:.2f} MiB; acceptance {}",
        mebibytes(info.drafter_bytes), info.rejection_sample_method);
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
  const std::string branches =
      stats.num_accepted_branch_tokens == 0
          ? ""
          : fmt::format(", {} of them by branches", stats.num_accepted_branch_tokens);
  return fmt::format("draft acceptance rate {:.1f} % ({} of {} drafted tokens{})",
                     100 * acceptance_rate(stats), stats.num_accepted_tokens,
                     stats.num_draft_tokens, branches);
}

std::vector<double> position_rates(const RequestStats& stats) {
  std::vector<double> rates;
  for (size_t i = 0; i < stats.num_draft_tokens_per_pos.size(); ++i) {
    if (stats.num_draft_tokens_per_pos[i] == 0) break;
    rates.push_back(ratio(stats.num_accepted_tokens_per_pos[i], stats.num_draft_tokens_per_pos[i]));
  }
  return rates;
}

std::vector<int64_t> position_counts(const std::array<int64_t, kMaxSpeculativeTokens>& counts) {
  size_t used = counts.size();
  while (used > 0 && counts[used - 1] == 0) --used;
  return {counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(used)};
}

std::string position_rates_text(const RequestStats& stats) {
  std::string text;
  for (const double rate : position_rates(stats)) {
    text += (text.empty() ? "" : ", ") + fmt::format("{:.3f}", rate);
  }
  return text;
}

std::string drafter_lines(const EngineStats& stats, const EngineInfo& info) {
  std::string lines;
  for (size_t i = 0; i < std::min(info.drafters.size(), stats.drafters.size()); ++i) {
    const RequestStats& drafter = stats.drafters[i];
    if (drafter.num_drafts == 0) continue;
    lines += fmt::format("{}: {}, mean acceptance length {:.2f}, by position {}\n",
                         info.drafters[i].name, acceptance_line(drafter),
                         mean_acceptance_length(drafter), position_rates_text(drafter));
  }
  return lines + synthetic_note(info);
}

std::string synthetic_note(const EngineInfo& info) {
  if (!info.has_synthetic_acceptance) return {};
  return "synthetic acceptance: for speed only, the text is not the model's\n";
}

std::string timing_line(const StepTiming& timing) {
  if (timing.num_steps == 0 || timing.num_planned == 0) return {};
  const auto us = [](int64_t ns, int64_t count) {
    return static_cast<double>(ns) / 1e3 / static_cast<double>(std::max<int64_t>(count, 1));
  };
  const int64_t planned = timing.num_planned;
  std::string exchanges;
  if (timing.exchange_ns > 0) {
    exchanges = fmt::format(", {:.3f} in collectives ({:.1f} %)",
                            us(timing.exchange_ns, timing.num_steps) / 1e3,
                            100 * ratio(timing.exchange_ns, timing.device_ns));
  }
  return fmt::format(
      "host {:.1f} us a step (plan {:.1f}, encode {:.1f}, submit {:.1f}, reconcile {:.1f}); device "
      "{:.3f} ms a step, {:.3f} of it after the result{}; idle between steps {:.1f} us (median "
      "{:.1f}, "
      "99 % {:.1f}), {:.2f} % of its time",
      us(timing.plan_ns + timing.encode_ns + timing.submit_ns + timing.reconcile_ns, planned),
      us(timing.plan_ns, planned), us(timing.encode_ns, planned), us(timing.submit_ns, planned),
      us(timing.reconcile_ns, planned), us(timing.device_ns, timing.num_steps) / 1e3,
      us(timing.draft_ns, timing.num_steps) / 1e3, exchanges, us(timing.idle_ns, timing.num_gaps),
      us(timing.idle_median_ns, 1), us(timing.idle_p99_ns, 1),
      100 * ratio(timing.idle_ns, timing.device_ns + timing.idle_ns));
}

std::string draft_line(const RequestStats& stats) {
  return fmt::format(
      "drafts in {:.0f} % of steps, mean acceptance length {:.1f} (1 + accepted / drafts), "
      "{:.0f} % fewer steps",
      100 * ratio(stats.num_drafts, stats.num_steps), mean_acceptance_length(stats),
      100 * ratio(stats.num_accepted_tokens, stats.num_output_tokens));
}

}  // namespace foretoken
