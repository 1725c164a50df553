#include "bench/serving_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace foretoken::bench {
namespace {

using nlohmann::ordered_json;

constexpr Metric kMetrics[] = {
    {"ttft", "TTFT", "Time to First Token", true, false, false},
    {"tpot", "TPOT", "Time per Output Token (excl. 1st token)", true, false, false},
    {"itl", "ITL", "Inter-token Latency", true, false, false},
    {"e2el", "E2EL", "End-to-end Latency", false, false, false},
    {"client_queue_time", "Client Queue Time", "Client-side Queueing", false, true, false},
    {"e2el_including_client_queue", "E2EL incl. Client Queue", "Queue-inclusive End-to-end Latency",
     false, true, true},
};

const char* ramp_name(RampUp ramp) { return ramp == RampUp::kLinear ? "linear" : "exponential"; }

void add_settings(const ReportSettings& settings, ordered_json* result) {
  ordered_json& all = *result;
  all["date"] = settings.date;
  all["endpoint_type"] = settings.backend;
  all["backend"] = settings.backend;
  all["label"] = settings.label ? ordered_json(*settings.label) : ordered_json();
  all["model_id"] = settings.model_id;
  all["tokenizer_id"] =
      settings.tokenizer_id ? ordered_json(*settings.tokenizer_id) : ordered_json();
  all["num_prompts"] = settings.num_prompts;
  for (const auto& [key, value] : settings.metadata) all[key] = value;
  const ArrivalOptions& arrivals = settings.arrivals;
  const bool all_at_once = std::isinf(arrivals.request_rate);
  all["request_rate"] = all_at_once ? ordered_json("inf") : ordered_json(arrivals.request_rate);
  all["burstiness"] =
      std::isinf(arrivals.burstiness) ? ordered_json("inf") : ordered_json(arrivals.burstiness);
  all["max_concurrency"] =
      settings.max_concurrency ? ordered_json(*settings.max_concurrency) : ordered_json();
  if (arrivals.ramp_up == RampUp::kNone) return;
  all["ramp_up_strategy"] = ramp_name(arrivals.ramp_up);
  all["ramp_up_start_rps"] = arrivals.start_rps;
  all["ramp_up_end_rps"] = arrivals.end_rps;
}

template <class Member>
ordered_json list_of(const std::vector<RequestRecord>& records, Member member) {
  ordered_json list = ordered_json::array();
  for (const RequestRecord& record : records) list.push_back(record.*member);
  return list;
}

void add_server_times(const std::vector<RequestRecord>& records, ordered_json* result) {
  const auto told = [](const RequestRecord& record) {
    return record.server_queue_time || record.server_ttft;
  };
  if (!std::any_of(records.begin(), records.end(), told)) return;
  ordered_json queue_times = ordered_json::array();
  ordered_json ttfts = ordered_json::array();
  for (const RequestRecord& record : records) {
    queue_times.push_back(record.server_queue_time ? ordered_json(*record.server_queue_time)
                                                   : ordered_json());
    ttfts.push_back(record.server_ttft ? ordered_json(*record.server_ttft) : ordered_json());
  }
  (*result)["server_queue_times"] = std::move(queue_times);
  (*result)["server_ttfts"] = std::move(ttfts);
}

void add_sums(const ReportSettings& settings, const LoadResult& load, const ServingMetrics& metrics,
              ordered_json* result) {
  ordered_json& all = *result;
  all["duration"] = load.duration;
  all["completed"] = metrics.completed;
  all["failed"] = metrics.failed;
  all["total_input_tokens"] = metrics.total_input;
  all["total_output_tokens"] = metrics.total_output;
  all["request_throughput"] = metrics.request_throughput;
  if (settings.pooling) {
    // One input a request.
    all["total_input_sequences"] = metrics.completed;
    all["input_sequence_throughput"] = metrics.request_throughput;
  }
  all["request_goodput"] =
      settings.with_goodput ? ordered_json(metrics.request_goodput) : ordered_json();
  all["output_throughput"] = metrics.output_throughput;
  all["total_token_throughput"] = metrics.total_token_throughput;
}

void add_lists(const LoadResult& load, ordered_json* result) {
  ordered_json& all = *result;
  all["input_lens"] = list_of(load.records, &RequestRecord::prompt_len);
  ordered_json output_lens = ordered_json::array();
  for (const RequestRecord& record : load.records) {
    output_lens.push_back(record.success ? record.output_tokens : 0);
  }
  all["output_lens"] = std::move(output_lens);
  all["ttfts"] = list_of(load.records, &RequestRecord::ttft);
  all["itls"] = list_of(load.records, &RequestRecord::itls);
  all["latencies"] = list_of(load.records, &RequestRecord::latency);
  all["start_times"] = list_of(load.records, &RequestRecord::start_time);
  all["queue_times"] = list_of(load.records, &RequestRecord::queue_time);
  all["generated_texts"] = list_of(load.records, &RequestRecord::text);
  all["errors"] = list_of(load.records, &RequestRecord::error);
}

void add_drafts(const DraftSummary& drafts, ordered_json* result) {
  ordered_json& all = *result;
  all["spec_decode_acceptance_rate"] = drafts.acceptance_rate;
  all["spec_decode_acceptance_length"] = drafts.acceptance_length;
  all["spec_decode_num_drafts"] = drafts.num_drafts;
  all["spec_decode_draft_tokens"] = drafts.draft_tokens;
  all["spec_decode_accepted_tokens"] = drafts.accepted_tokens;
  all["spec_decode_per_position_acceptance_rates"] = drafts.acceptance_by_pos;
}

void add_probes(const ProbeSummary& probes, ordered_json* result) {
  ordered_json& all = *result;
  all["probe_completed"] = probes.completed;
  all["probe_failed"] = probes.failed;
  all["probe_median_e2el_ms"] = probes.latency.median;
  all["probe_p99_e2el_ms"] = probes.latency.percentiles[0].second;
  all["probe_max_e2el_ms"] = probes.latency.percentiles[1].second;
}

}  // namespace

std::vector<const Metric*> shown_metrics(const ReportSettings& settings) {
  std::vector<const Metric*> shown;
  for (const Metric& metric : kMetrics) {
    const auto& wanted = settings.percentile_metrics;
    const bool asked = std::find(wanted.begin(), wanted.end(), metric.name) != wanted.end();
    const bool exists = (!metric.needs_tokens || !settings.pooling) &&
                        (!metric.needs_concurrency || settings.max_concurrency) &&
                        (!metric.needs_rate || !std::isinf(settings.arrivals.request_rate));
    if (asked && exists) shown.push_back(&metric);
  }
  return shown;
}

std::string percent_text(double percent) { return fmt::format("{:g}", percent); }

std::optional<ProbeSummary> summarise_probes(const std::vector<RequestRecord>& probes) {
  std::vector<double> latencies;
  for (const RequestRecord& probe : probes) {
    if (probe.success) latencies.push_back(probe.latency);
  }
  if (latencies.empty()) return {};
  return ProbeSummary{latencies.size(), probes.size() - latencies.size(),
                      describe(latencies, {99, 100}, 1e3)};
}

nlohmann::ordered_json result_json(const ReportSettings& settings, const LoadResult& load,
                                   const ServingMetrics& metrics) {
  ordered_json result;
  add_settings(settings, &result);
  add_sums(settings, load, metrics, &result);
  add_lists(load, &result);
  result["max_output_tokens_per_s"] = metrics.max_output_tokens_per_s;
  result["max_concurrent_requests"] = metrics.max_concurrent_requests;
  result["rtfx"] = 0.0;
  add_server_times(load.records, &result);
  if (const auto probes = summarise_probes(load.probes)) add_probes(*probes, &result);
  if (!load.rate_changes.empty()) {
    ordered_json& changes = result["rps_change_events"] = ordered_json::array();
    for (const RateChange& change : load.rate_changes) {
      changes.push_back({{"rps", change.rps}, {"timestamp", change.timestamp}});
    }
  }
  if (load.drafts) add_drafts(*load.drafts, &result);
  for (const Metric* metric : shown_metrics(settings)) {
    const Distribution& values = metrics.latencies.at(metric->name);
    const std::string end = std::string("_") + metric->name + "_ms";
    result["mean" + end] = values.mean;
    result["median" + end] = values.median;
    result["std" + end] = values.std;
    for (const auto& [percent, value] : values.percentiles) {
      result["p" + percent_text(percent) + end] = value;
    }
  }
  if (settings.interrupted) result["num_unfinished"] = load.num_unfinished;
  return result;
}

void drop_details(nlohmann::ordered_json* result) {
  for (const char* name : {"input_lens", "output_lens", "start_times", "ttfts", "itls",
                           "generated_texts", "errors", "server_queue_times", "server_ttfts"}) {
    result->erase(name);
  }
}

}  // namespace foretoken::bench
