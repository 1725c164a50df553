#pragma once
#include "bench/serving_report.h"

namespace foretoken::bench {

// Four requests of 10 and 5 tokens, 0.1 s apart, and `num_failed` that failed.
inline LoadResult load_of(size_t num_failed = 1) {
  LoadResult load;
  load.duration = 2;
  for (int i = 0; i < 4; ++i) {
    RequestRecord record;
    record.success = true;
    record.start_time = 0.1 * i;
    record.ttft = 0.1;
    record.itls = {0.1, 0.2};
    record.latency = 0.4;
    record.prompt_len = 10;
    record.output_tokens = 5;
    record.text = "text";
    load.records.push_back(record);
  }
  for (size_t i = 0; i < num_failed; ++i) {
    RequestRecord failed;
    failed.prompt_len = 10;
    failed.error = "HTTP 500";
    load.records.push_back(failed);
  }
  return load;
}

inline ReportSettings settings_of() {
  ReportSettings settings;
  settings.date = "20261122-073000";
  settings.backend = "vllm";
  settings.model_id = "m";
  settings.num_prompts = 5;
  settings.percentile_metrics = {
      "ttft", "tpot", "itl", "e2el", "client_queue_time", "e2el_including_client_queue"};
  return settings;
}

inline ServingMetrics metrics_of(const LoadResult& load) {
  return serving_metrics(load.records, load.duration, {50, 99, 99.9}, {});
}

inline nlohmann::ordered_json json_of(const ReportSettings& settings, const LoadResult& load) {
  return result_json(settings, load, metrics_of(load));
}

}  // namespace foretoken::bench
