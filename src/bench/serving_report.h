#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/load_run.h"
#include "bench/serving_metrics.h"

namespace foretoken::bench {

// What a result says about how it came to be.
struct ReportSettings {
  std::string date;  // "20261122-073000"
  std::string backend;
  bool pooling = false;  // embeddings: no tokens come out
  std::optional<std::string> label;
  std::string model_id;
  std::optional<std::string> tokenizer_id;
  int num_prompts = 0;
  std::vector<std::pair<std::string, std::string>> metadata;
  ArrivalOptions arrivals;
  std::optional<int> max_concurrency;
  bool with_goodput = false;
  std::vector<std::string> percentile_metrics;  // "ttft", "tpot", ...
  bool interrupted = false;
};

// vLLM's result object, with everything that --save-detailed keeps.
nlohmann::ordered_json result_json(const ReportSettings& settings, const LoadResult& load,
                                   const ServingMetrics& metrics);

// Takes out of a result what vLLM leaves to --save-detailed: the lists with an entry for each
// request or token, but for latencies and queue times.
void drop_details(nlohmann::ordered_json* result);

// A metric with a block of its own in the table.
struct Metric {
  const char* name;   // in the JSON
  const char* label;  // in the lines of the table
  const char* title;
  bool needs_tokens;       // means nothing for embeddings
  bool needs_concurrency;  // exists with --max-concurrency only
  bool needs_rate;         // and with a finite rate only
};
// Those that were asked for and exist, in the order of the table.
std::vector<const Metric*> shown_metrics(const ReportSettings& settings);

// "99" for 99.0, "99.9" for 99.9.
std::string percent_text(double percent);

// What the probes took, in ms.
struct ProbeSummary {
  size_t completed = 0;
  size_t failed = 0;
  Distribution latency;  // percentiles 99 and 100
};
// None when none succeeded.
std::optional<ProbeSummary> summarise_probes(const std::vector<RequestRecord>& probes);

}  // namespace foretoken::bench
