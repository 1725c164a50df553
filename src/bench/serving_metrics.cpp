#include "bench/serving_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace foretoken::bench {
namespace {

bool is_good(const RequestRecord& record, const Goodput& goodput) {
  const auto within = [](double seconds, const std::optional<double>& limit_ms) {
    return !limit_ms || seconds * 1e3 <= *limit_ms;
  };
  return within(record.ttft, goodput.ttft) && within(record.tpot(), goodput.tpot) &&
         within(record.latency, goodput.e2el);
}

// When tokens came, and how many.
using Tokens = std::vector<std::pair<double, double>>;

void add_tokens(const RequestRecord& record, Tokens* tokens) {
  if (record.num_chunks() == 0) return;
  const double share =
      static_cast<double>(record.output_tokens) / static_cast<double>(record.num_chunks());
  double time = record.start_time + record.ttft;
  tokens->emplace_back(time, share);
  for (const double gap : record.itls) tokens->emplace_back(time += gap, share);
}

// Tokens/s of the best second, or of the whole time where that is shorter.
double best_second(const std::vector<const RequestRecord*>& done) {
  if (done.empty()) return 0;
  Tokens tokens;
  double begin = done.front()->start_time;
  for (const RequestRecord* record : done) {
    add_tokens(*record, &tokens);
    begin = std::min(begin, record->start_time);
  }
  std::sort(tokens.begin(), tokens.end());
  if (tokens.empty() || tokens.back().first <= begin) return 0;
  const double window = std::min(1.0, tokens.back().first - begin);
  double sum = 0;
  double best = 0;
  for (size_t first = 0, last = 0; last < tokens.size(); ++last) {
    sum += tokens[last].second;
    while (tokens[first].first < tokens[last].first - window) sum -= tokens[first++].second;
    best = std::max(best, sum);
  }
  return best / window;
}

// Most requests that ran at one moment.
int64_t max_running(const std::vector<const RequestRecord*>& done) {
  std::vector<std::pair<double, int>> changes;
  for (const RequestRecord* record : done) {
    changes.emplace_back(record->start_time, 1);
    changes.emplace_back(record->start_time + record->latency, -1);
  }
  // At equal times the end comes first.
  std::sort(changes.begin(), changes.end());
  int64_t running = 0;
  int64_t most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, running += change);
  return most;
}

void describe_latencies(const std::vector<const RequestRecord*>& done,
                        const std::vector<double>& percents, ServingMetrics* metrics) {
  std::map<std::string, std::vector<double>> values;
  for (const RequestRecord* record : done) {
    values["ttft"].push_back(record->ttft);
    if (record->output_tokens > 1) values["tpot"].push_back(record->tpot());
    std::vector<double>& itls = values["itl"];
    itls.insert(itls.end(), record->itls.begin(), record->itls.end());
    values["e2el"].push_back(record->latency);
    values["client_queue_time"].push_back(record->queue_time);
    values["e2el_including_client_queue"].push_back(record->latency + record->queue_time);
  }
  for (const char* name :
       {"ttft", "tpot", "itl", "e2el", "client_queue_time", "e2el_including_client_queue"}) {
    metrics->latencies[name] = describe(std::move(values[name]), percents, 1e3);
  }
}

}  // namespace

Result<Goodput> parse_goodput(const std::vector<std::string>& pairs) {
  Goodput goodput;
  for (const std::string& pair : pairs) {
    const size_t colon = std::min(pair.find(':'), pair.size());
    const std::string name = pair.substr(0, colon);
    std::optional<double>* target = name == "ttft"   ? &goodput.ttft
                                    : name == "tpot" ? &goodput.tpot
                                    : name == "e2el" ? &goodput.e2el
                                                     : nullptr;
    const std::string number = pair.substr(std::min(colon + 1, pair.size()));
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (target == nullptr || number.empty() || *end != '\0' || !(value >= 0)) {
      return invalid_argument("--goodput takes ttft:MS, tpot:MS and e2el:MS, not '" + pair + "'");
    }
    *target = value;
  }
  return goodput;
}

ServingMetrics serving_metrics(const std::vector<RequestRecord>& records, double duration,
                               const std::vector<double>& percents, const Goodput& goodput) {
  ServingMetrics metrics;
  std::vector<const RequestRecord*> done;
  int64_t num_good = 0;
  for (const RequestRecord& record : records) {
    if (!record.success) {
      ++metrics.failed;
      continue;
    }
    done.push_back(&record);
    metrics.total_input += record.prompt_len;
    metrics.total_output += record.output_tokens;
    if (goodput.wanted() && is_good(record, goodput)) ++num_good;
  }
  metrics.completed = static_cast<int64_t>(done.size());
  metrics.request_throughput = static_cast<double>(metrics.completed) / duration;
  metrics.request_goodput = static_cast<double>(num_good) / duration;
  metrics.output_throughput = static_cast<double>(metrics.total_output) / duration;
  metrics.total_token_throughput =
      static_cast<double>(metrics.total_input + metrics.total_output) / duration;
  metrics.max_output_tokens_per_s = best_second(done);
  metrics.max_concurrent_requests = max_running(done);
  describe_latencies(done, percents, &metrics);
  return metrics;
}

}  // namespace foretoken::bench
