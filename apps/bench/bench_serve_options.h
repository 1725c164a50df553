#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/load_run.h"
#include "bench/samples/dataset.h"
#include "bench/serving_metrics.h"
#include "bench/timeline_plot.h"
#include "net/client.h"

namespace foretoken {

// The flags of `bench serve`, named as vLLM's, as they were given.
struct BenchServeOptions {
  std::string backend = "openai";
  std::string base_url;
  std::string host = "127.0.0.1";
  int port = 8000;
  std::string endpoint;  // empty: the backend's
  std::vector<std::string> headers;
  bool insecure = false;
  int connect_timeout_s = 30;
  int request_timeout_s = 6 * 60 * 60;
  std::string model;  // empty: the first one of the server
  std::string served_model_name;
  std::string tokenizer;
  bool skip_tokenizer_init = false;
  std::vector<std::string> lora_modules;
  std::string lora_assignment = "random";

  bench::DatasetSpec dataset;
  std::optional<int> input_len;
  std::optional<int> output_len;
  std::string random_range_ratio = "0.0";

  bench::ArrivalOptions arrivals;
  std::string ramp_up_strategy;
  std::optional<int> max_concurrency;
  int num_warmups = 0;
  int ready_timeout_s = 0;
  double probe_rate = 0;
  bool profile = false;
  bool quiet = false;  // no progress
  std::string request_id_prefix;

  nlohmann::ordered_json sampling = nlohmann::ordered_json::object();
  std::optional<int> logprobs;
  std::optional<bool> ignore_eos;
  std::string extra_body;

  bool save_result = false;
  bool save_detailed = false;
  bool append_result = false;
  std::string result_dir;
  std::string result_filename;
  std::vector<std::string> metadata;
  std::string label;
  std::string percentile_metrics;
  std::string metric_percentiles = "99";
  std::vector<std::string> goodput;
  bool plot_timeline = false;
  std::string itl_thresholds = "25,50";

  // They write into this object, which must outlive the parsing.
  void add_to(CLI::App& app);
};

// The flags, checked and put together.
struct BenchServePlan {
  net::Url url;
  net::ClientOptions client;
  bench::DatasetSpec dataset;
  bench::LoadOptions load;  // without models and callbacks
  bench::Goodput goodput;
  bench::ItlThresholds itl_thresholds{};
  std::vector<double> percentiles;
  std::vector<std::string> percentile_metrics;
  std::vector<std::pair<std::string, std::string>> metadata;

  bool pooling() const { return load.backend->protocol == bench::Protocol::kEmbeddings; }
};

// InvalidArgument names the flag at fault.
Result<BenchServePlan> make_plan(const BenchServeOptions& options);

}  // namespace foretoken
