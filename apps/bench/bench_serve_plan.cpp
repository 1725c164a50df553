#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <sstream>

#include "apps/bench/bench_serve_options.h"
#include "base/files/json_object.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    part.erase(0, part.find_first_not_of(' '));
    part.erase(part.find_last_not_of(' ') + 1);
    parts.push_back(part);
  }
  return parts;
}

Result<std::pair<std::string, std::string>> key_value(const char* flag, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return invalid_argument(std::string(flag) + " takes KEY=VALUE, not '" + text + "'");
  }
  return std::make_pair(text.substr(0, equals), text.substr(equals + 1));
}

bool is_header_text(const std::string& text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20; });
}

Result<net::Headers> make_headers(const BenchServeOptions& options) {
  net::Headers headers;
  bool has_key = false;
  for (const std::string& text : options.headers) {
    FT_ASSIGN_OR_RETURN(auto header, key_value("--header", text));
    if (!is_header_text(text)) return invalid_argument("--header must be one line of text");
    has_key = has_key || header.first == "Authorization" || header.first == "authorization";
    headers.push_back(std::move(header));
  }
  const char* key = std::getenv("OPENAI_API_KEY");
  if (key != nullptr && *key != '\0' && !has_key) {
    if (!is_header_text(key)) return invalid_argument("OPENAI_API_KEY must be one line of text");
    headers.emplace_back("Authorization", std::string("Bearer ") + key);
  }
  return headers;
}

// OpenAI's own base URLs end with /v1, with which the endpoints here begin; /metrics lies outside.
Result<net::Url> given_url(const std::string& base_url) {
  FT_ASSIGN_OR_RETURN(net::Url url, net::parse_url(base_url));
  const std::string version = "/v1";
  const size_t rest = url.path.size() - std::min(url.path.size(), version.size());
  if (url.path.substr(rest) == version) url.path.resize(rest);
  return url;
}

Result<net::Url> make_url(const BenchServeOptions& options) {
  if (!options.base_url.empty()) return given_url(options.base_url);
  const bool v6 = options.host.find(':') != std::string::npos && options.host.front() != '[';
  const std::string host = v6 ? "[" + options.host + "]" : options.host;
  return net::parse_url("http://" + host + ":" + std::to_string(options.port));
}

Result<bench::DatasetSpec> make_dataset(const BenchServeOptions& options, bool chat, bool pooling) {
  bench::DatasetSpec dataset = options.dataset;
  if (!bench::reads_file(dataset.name) && !dataset.path.empty()) {
    return invalid_argument("--dataset-name " + dataset.name +
                            " reads no file; name the format of '" + dataset.path +
                            "' with --dataset-name");
  }
  FT_RETURN_IF_ERROR(bench::parse_range_ratio(options.random_range_ratio, &dataset.random));
  if (options.input_len) {
    dataset.random.input_len = dataset.sonnet.input_len = *options.input_len;
  }
  if (options.output_len) {
    dataset.random.output_len = dataset.sonnet.output_len = *options.output_len;
    dataset.prefix.output_len = dataset.spec_bench_output_len = *options.output_len;
    dataset.sharegpt_output_len = dataset.custom_output_len = options.output_len;
  }
  if (dataset.custom_output_len == 0) {
    return invalid_argument("--custom-output-len must be at least 1, or -1");
  }
  if (!dataset.chat_template_kwargs.empty()) {
    FT_RETURN_IF_ERROR(
        parse_ordered_json_object(dataset.chat_template_kwargs, "--chat-template-kwargs").status());
  }
  dataset.keeps_messages = chat;
  dataset.skip_chat_template = dataset.skip_chat_template || pooling;
  return dataset;
}

Result<bench::SharedFields> make_fields(const BenchServeOptions& options) {
  bench::SharedFields fields;
  fields.logprobs = options.logprobs;
  fields.ignore_eos = options.ignore_eos.value_or(options.dataset.name == "random");
  fields.extra = options.sampling;
  if (options.extra_body.empty()) return fields;
  FT_ASSIGN_OR_RETURN(const json more,
                      parse_ordered_json_object(options.extra_body, "--extra-body"));
  fields.extra.update(more);
  return fields;
}

Result<std::vector<double>> parse_percentiles(const std::string& text) {
  std::vector<double> percentiles;
  for (const std::string& part : split(text)) {
    char* end = nullptr;
    const double value = std::strtod(part.c_str(), &end);
    if (part.empty() || *end != '\0' || !(value >= 0 && value <= 100)) {
      return invalid_argument(
          "--metric-percentiles takes numbers from 0 to 100 like 50,90,99, not "
          "'" +
          text + "'");
    }
    percentiles.push_back(value);
  }
  return percentiles;
}

Result<std::vector<std::string>> parse_metrics(const std::string& text, bool pooling) {
  static const std::set<std::string> known = {
      "ttft", "tpot", "itl", "e2el", "client_queue_time", "e2el_including_client_queue"};
  std::vector<std::string> metrics = split(!text.empty() ? text
                                           : pooling     ? "e2el"
                                                         : "ttft,tpot,itl");
  for (const std::string& metric : metrics) {
    if (known.count(metric) == 1) continue;
    return invalid_argument(
        "--percentile-metrics takes ttft, tpot, itl, e2el, client_queue_time "
        "and e2el_including_client_queue, not '" +
        metric + "'");
  }
  return metrics;
}

std::string chance_prefix() {
  char text[32];
  std::snprintf(text, sizeof(text), "bench-%08x-", std::random_device()());
  return text;
}

Result<bench::LoadOptions> make_load(const BenchServeOptions& options) {
  bench::LoadOptions load;
  load.backend = bench::find_backend(options.backend);
  load.endpoint = options.endpoint.empty() ? load.backend->endpoint : options.endpoint;
  FT_RETURN_IF_ERROR(bench::check_endpoint(*load.backend, load.endpoint));
  load.models_in_turn = options.lora_assignment == "round-robin";
  FT_ASSIGN_OR_RETURN(load.fields, make_fields(options));
  FT_ASSIGN_OR_RETURN(load.headers, make_headers(options));
  load.request_id_prefix =
      options.request_id_prefix.empty() ? chance_prefix() : options.request_id_prefix;
  load.arrivals = options.arrivals;
  load.arrivals.seed = options.dataset.seed;
  load.arrivals.ramp_up = options.ramp_up_strategy == "linear"        ? bench::RampUp::kLinear
                          : options.ramp_up_strategy == "exponential" ? bench::RampUp::kExponential
                                                                      : bench::RampUp::kNone;
  FT_RETURN_IF_ERROR(bench::check_arrivals(load.arrivals));
  load.max_concurrency = options.max_concurrency.value_or(0);
  load.num_warmups = options.num_warmups;
  load.ready_timeout_s = options.ready_timeout_s;
  load.probe_rate = options.probe_rate;
  load.profile = options.profile;
  return load;
}

}  // namespace

Result<BenchServePlan> make_plan(const BenchServeOptions& options) {
  BenchServePlan plan;
  FT_ASSIGN_OR_RETURN(plan.url, make_url(options));
  plan.client.verify_tls = !options.insecure;
  plan.client.connect_timeout = std::chrono::seconds(options.connect_timeout_s);
  plan.client.request_timeout = std::chrono::seconds(options.request_timeout_s);
  FT_ASSIGN_OR_RETURN(plan.load, make_load(options));
  const bench::Protocol protocol = plan.load.backend->protocol;
  const bool chat = protocol == bench::Protocol::kChat || protocol == bench::Protocol::kResponses;
  FT_ASSIGN_OR_RETURN(plan.dataset, make_dataset(options, chat, plan.pooling()));
  FT_ASSIGN_OR_RETURN(plan.goodput, bench::parse_goodput(options.goodput));
  FT_ASSIGN_OR_RETURN(plan.itl_thresholds, bench::parse_itl_thresholds(options.itl_thresholds));
  FT_ASSIGN_OR_RETURN(plan.percentiles, parse_percentiles(options.metric_percentiles));
  FT_ASSIGN_OR_RETURN(plan.percentile_metrics,
                      parse_metrics(options.percentile_metrics, plan.pooling()));
  for (const std::string& text : options.metadata) {
    FT_ASSIGN_OR_RETURN(auto pair, key_value("--metadata", text));
    plan.metadata.push_back(std::move(pair));
  }
  return plan;
}

}  // namespace foretoken
