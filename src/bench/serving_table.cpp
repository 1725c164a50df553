#include "bench/serving_table.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace foretoken::bench {
namespace {

// Lines of the table: a name and a number, or a title between rules.
class Table {
 public:
  void title(const std::string& text, char rule) {
    const std::string rules(50, rule);
    const size_t room = text.size() < 50 ? 50 - text.size() : 0;
    text_ += rules.substr(0, room / 2) + text + rules.substr(0, room - room / 2) + "\n";
  }
  void count(const std::string& name, int64_t value) {
    text_ += fmt::format("{:<40} {:<10}\n", name, value);
  }
  void number(const std::string& name, double value) {
    text_ += fmt::format("{:<40} {:<10.2f}\n", name, value);
  }
  void line(const std::string& text) { text_ += text + "\n"; }
  std::string text() const { return text_; }

 private:
  std::string text_;
};

void table_head(const ReportSettings& settings, const LoadResult& load,
                const ServingMetrics& metrics, Table* table) {
  table->title(" Serving Benchmark Result ", '=');
  table->count("Successful requests:", metrics.completed);
  table->count("Failed requests:", metrics.failed);
  if (settings.interrupted) {
    table->count("Unfinished requests:", static_cast<int64_t>(load.num_unfinished));
  }
  if (settings.max_concurrency) {
    table->count("Maximum request concurrency:", *settings.max_concurrency);
  }
  if (!std::isinf(settings.arrivals.request_rate)) {
    table->number("Request rate configured (RPS):", settings.arrivals.request_rate);
  }
  table->number("Benchmark duration (s):", load.duration);
  table->count("Total input tokens:", metrics.total_input);
  if (!settings.pooling) table->count("Total generated tokens:", metrics.total_output);
  table->number("Request throughput (req/s):", metrics.request_throughput);
  if (settings.pooling) {
    table->number("Input throughput (inputs/s):", metrics.request_throughput);
  }
  if (settings.with_goodput) table->number("Request goodput (req/s):", metrics.request_goodput);
  if (!settings.pooling) {
    table->number("Output token throughput (tok/s):", metrics.output_throughput);
    table->number("Peak output token throughput (tok/s):", metrics.max_output_tokens_per_s);
  }
  table->number("Peak concurrent requests:", static_cast<double>(metrics.max_concurrent_requests));
  table->number("Total token throughput (tok/s):", metrics.total_token_throughput);
}

void table_probes(const ProbeSummary& probes, Table* table) {
  table->title("Probe Requests", '-');
  table->count("Probe requests completed:", static_cast<int64_t>(probes.completed));
  table->count("Probe requests failed:", static_cast<int64_t>(probes.failed));
  table->number("Median probe E2EL (ms):", probes.latency.median);
  table->number("P99 probe E2EL (ms):", probes.latency.percentiles[0].second);
  table->number("Max probe E2EL (ms):", probes.latency.percentiles[1].second);
}

void table_metric(const Metric& metric, const Distribution& values, Table* table) {
  table->title(metric.title, '-');
  table->number(fmt::format("Mean {} (ms):", metric.label), values.mean);
  table->number(fmt::format("Median {} (ms):", metric.label), values.median);
  for (const auto& [percent, value] : values.percentiles) {
    table->number(fmt::format("P{} {} (ms):", percent_text(percent), metric.label), value);
  }
}

void table_drafts(const DraftSummary& drafts, Table* table) {
  table->title("Speculative Decoding", '-');
  table->number("Acceptance rate (%):", drafts.acceptance_rate);
  table->number("Acceptance length:", drafts.acceptance_length);
  table->count("Drafts:", drafts.num_drafts);
  table->count("Draft tokens:", drafts.draft_tokens);
  table->count("Accepted tokens:", drafts.accepted_tokens);
  if (drafts.acceptance_by_pos.empty()) return;
  table->line("Per-position acceptance (%):");
  for (size_t i = 0; i < drafts.acceptance_by_pos.size(); ++i) {
    table->number(fmt::format("  Position {}:", i), drafts.acceptance_by_pos[i] * 100);
  }
}

}  // namespace

std::string result_table(const ReportSettings& settings, const LoadResult& load,
                         const ServingMetrics& metrics) {
  Table table;
  table_head(settings, load, metrics, &table);
  if (const auto probes = summarise_probes(load.probes)) table_probes(*probes, &table);
  for (const Metric* metric : shown_metrics(settings)) {
    table_metric(*metric, metrics.latencies.at(metric->name), &table);
  }
  if (load.drafts) table_drafts(*load.drafts, &table);
  table.line(std::string(50, '='));
  return table.text();
}

std::string failure_lines(const std::vector<RequestRecord>& records) {
  constexpr size_t kMaxErrors = 10;
  std::map<std::string, size_t> counts;
  size_t num_failed = 0;
  for (const RequestRecord& record : records) {
    if (record.success) continue;
    ++num_failed;
    ++counts[record.error];
  }
  if (num_failed == 0) return "";
  std::vector<std::pair<size_t, std::string>> errors;
  for (const auto& [error, count] : counts) errors.emplace_back(count, error);
  std::stable_sort(errors.begin(), errors.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text = fmt::format("{} of {} requests failed:\n", num_failed, records.size());
  for (size_t i = 0; i < std::min(errors.size(), kMaxErrors); ++i) {
    text += fmt::format("  {} x {}\n", errors[i].first, errors[i].second);
  }
  if (errors.size() > kMaxErrors) {
    text += fmt::format("  and {} other errors\n", errors.size() - kMaxErrors);
  }
  return text;
}

}  // namespace foretoken::bench
