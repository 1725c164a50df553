#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/request_record.h"
#include "bench/statistics.h"

namespace foretoken::bench {

// What a request must not exceed to count as good, in milliseconds.
struct Goodput {
  std::optional<double> ttft;
  std::optional<double> tpot;
  std::optional<double> e2el;

  bool wanted() const { return ttft || tpot || e2el; }
};

// {"ttft:200", "tpot:20"}; InvalidArgument for another name or no number.
Result<Goodput> parse_goodput(const std::vector<std::string>& pairs);

// The sums over a run, as in vLLM's results.
struct ServingMetrics {
  int64_t completed = 0;
  int64_t failed = 0;
  int64_t total_input = 0;
  int64_t total_output = 0;
  double request_throughput = 0;  // all rates are per second
  double request_goodput = 0;
  double output_throughput = 0;
  double total_token_throughput = 0;
  // Of the best second, wherever it begins. A chunk counts with its share of the request's tokens
  // (vLLM counts chunks, in the whole seconds since the start).
  double max_output_tokens_per_s = 0;
  // At one moment (vLLM counts all that run within a second, also one after another).
  int64_t max_concurrent_requests = 0;
  // "ttft", "tpot", "itl", "e2el", "client_queue_time", "e2el_including_client_queue", in ms.
  std::map<std::string, Distribution> latencies;
};

// `duration`: seconds of the whole run, above 0. `percents` are those of the distributions.
ServingMetrics serving_metrics(const std::vector<RequestRecord>& records, double duration,
                               const std::vector<double>& percents, const Goodput& goodput);

}  // namespace foretoken::bench
