#include "serve/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <sstream>

#include "serve/metrics/metric_bounds.h"
#include "serve/metrics/metric_buckets.h"
#include "serve/metrics/metric_order.h"
#include "serve/metrics/older_names.h"
#include "serve/metrics/process_metrics.h"
#include "serve/metrics/span_metrics.h"

namespace foretoken {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;

double seconds_between(std::chrono::steady_clock::time_point begin,
                       std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// A counter of the engine's can only be told anew, a Prometheus counter only grows.
void raise_to(Counter& counter, double value) {
  counter.Increment(std::max(value - counter.Value(), 0.0));
}

// `more` and what it lacks of `engine`.
Labels with(const Labels& engine, Labels more) {
  more.insert(engine.begin(), engine.end());
  return more;
}

std::string listed(const std::set<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ",") + name;
  return list;
}

// As vLLM tells routers which adapters a server has at work: the names are labels, the value is the
// time in seconds since 1970, by which the newest of several series is known.
prometheus::MetricFamily adapter_family(int max_loras, const std::set<std::string>& running,
                                        const std::set<std::string>& waiting) {
  prometheus::ClientMetric metric;
  metric.label.push_back({"max_lora", std::to_string(max_loras)});
  metric.label.push_back({"running_lora_adapters", listed(running)});
  metric.label.push_back({"waiting_lora_adapters", listed(waiting)});
  metric.gauge.value =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return {"vllm:lora_requests_info",
          "Adapters of requests that run and that wait.",
          prometheus::MetricType::Gauge,
          {std::move(metric)}};
}

}  // namespace

// The engines' histograms of tokens by step, which hold more than single values can tell.
class StepTokensFamily : public prometheus::Collectable {
 public:
  // Replaces those of the engine with these labels.
  void set(const Labels& labels, const StepTokens& tokens) { tokens_[labels] = tokens; }

  std::vector<prometheus::MetricFamily> Collect() const override {
    prometheus::MetricFamily family{"vllm:iteration_tokens_total",
                                    "Tokens computed by an engine step.",
                                    prometheus::MetricType::Histogram,
                                    {}};
    for (const auto& [labels, tokens] : tokens_) family.metric.push_back(series(labels, tokens));
    return {family};
  }

 private:
  static prometheus::ClientMetric series(const Labels& labels, const StepTokens& tokens) {
    prometheus::ClientMetric metric;
    for (const auto& [name, value] : labels) metric.label.push_back({name, value});
    uint64_t sum = 0;
    for (size_t i = 0; i < tokens.num_steps.size(); ++i) {
      sum += static_cast<uint64_t>(tokens.num_steps[i]);
      const double bound = i < StepTokens::kBounds.size()
                               ? static_cast<double>(StepTokens::kBounds[i])
                               : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({sum, bound});
    }
    metric.histogram.sample_count = sum;
    metric.histogram.sample_sum = static_cast<double>(tokens.sum);
    return metric;
  }

  std::map<Labels, StepTokens> tokens_;
};

// The series, all made at the start so that a scrape shows them before anything happened.
struct ServeMetrics::Families {
  Families(const std::string& model_name, const EngineInfo& info);

  Counter& counter(const std::string& name, const std::string& help, const Labels& more = {}) {
    Labels labels = more;
    labels.insert(base.begin(), base.end());
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add(labels);
  }
  Gauge& gauge(const std::string& name, const std::string& help, const Labels& more = {}) {
    Labels labels = more;
    labels.insert(base.begin(), base.end());
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels);
  }
  Histogram& histogram(const std::string& name, const std::string& help,
                       const std::vector<double>& buckets) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(base, buckets);
  }
  Counter& success(FinishReason reason) {
    return counter("vllm:request_success_total", "Requests that ended, by reason.",
                   {{"finished_reason", finish_reason_name(reason)}});
  }
  // Of the server, not of an engine, as in vLLM.
  Counter& tool_parses(const ToolParse& parse) {
    return prometheus::BuildCounter()
        .Name("vllm:tool_call_parser_invocations_total")
        .Help("Searches for tool calls: whole texts, or pieces of streams.")
        .Register(registry)
        .Add({{"model_name", base.at("model_name")},
              {"mode", parse.streaming ? "streaming" : "non_streaming"},
              {"outcome", parse.found ? "tool_call" : "no_tool_call"},
              {"request_type", parse.request_type}});
  }
  // Series with labels of their own.
  void begin_labelled(const EngineInfo& info);
  // `engine`: its label.
  void set_stats(const EngineStats& stats, const Labels& engine);
  void set_prefix_cache(const EngineStats& stats, const Labels& engine);
  void set_speculation(const RequestStats& sums, const Labels& engine);

  const Labels base;
  const size_t first_engine;  // number of the first one of EngineStats::engines
  const int max_model_len;
  const int num_positions;                  // most drafts of a step, by any drafter
  const std::vector<std::string> drafters;  // by name
  prometheus::Registry registry;
  StepTokensFamily step_tokens;
  std::mutex scrape_mutex;

  Histogram& first_token;
  Histogram& inter_token;
  Histogram& time_per_token;
  Histogram& latency;
  Histogram& queue_time;
  Histogram& prefill_time;
  Histogram& decode_time;
  Histogram& inference_time;
  Histogram& prompt_tokens;
  Histogram& generation_tokens;
  Histogram& longest_generation;
  Histogram& prefill_computed;
  Histogram& num_choices;
  Histogram& max_tokens;
  Histogram& preemptions;
};

namespace {

int max_draft_tokens(const EngineInfo& info) {
  int most = 0;
  for (const DrafterInfo& drafter : info.drafters) {
    most = std::max(most, drafter.num_speculative_tokens);
  }
  return most;
}

std::vector<std::string> names_of(const std::vector<DrafterInfo>& drafters) {
  std::vector<std::string> names;
  for (const DrafterInfo& drafter : drafters) names.push_back(drafter.name);
  return names;
}

}  // namespace

ServeMetrics::Families::Families(const std::string& model_name, const EngineInfo& info)
    : base{{"model_name", model_name},
           {"engine", info.num_engines > 1 ? "all" : std::to_string(info.first_engine)}},
      first_engine(static_cast<size_t>(info.first_engine)),
      max_model_len(info.max_model_len),
      num_positions(max_draft_tokens(info)),
      drafters(names_of(info.drafters)),
      first_token(histogram("vllm:time_to_first_token_seconds",
                            "From a request to its first token.", first_token_buckets())),
      inter_token(histogram("vllm:inter_token_latency_seconds",
                            "Between two outputs of a sequence.", token_latency_buckets())),
      time_per_token(histogram("vllm:request_time_per_output_token_seconds",
                               "Mean time of a token after the first, by request.",
                               token_latency_buckets())),
      latency(histogram("vllm:e2e_request_latency_seconds", "From a request to its end.",
                        request_buckets())),
      queue_time(histogram("vllm:request_queue_time_seconds",
                           "From a request to the first step that has it.", request_buckets())),
      prefill_time(histogram("vllm:request_prefill_time_seconds",
                             "From the first step of a request to its first token.",
                             request_buckets())),
      decode_time(histogram("vllm:request_decode_time_seconds",
                            "From the first token of a request to its last.", request_buckets())),
      inference_time(histogram("vllm:request_inference_time_seconds",
                               "From the first step of a request to its last token.",
                               request_buckets())),
      prompt_tokens(histogram("vllm:request_prompt_tokens", "Tokens of a prompt.",
                              count_buckets(max_model_len))),
      generation_tokens(histogram("vllm:request_generation_tokens", "Tokens of an output.",
                                  count_buckets(max_model_len))),
      longest_generation(histogram("vllm:request_max_num_generation_tokens",
                                   "Tokens of the longest choice of a request.",
                                   count_buckets(max_model_len))),
      prefill_computed(histogram("vllm:request_prefill_kv_computed_tokens",
                                 "Tokens of a prompt that the prefix cache did not have.",
                                 count_buckets(max_model_len))),
      num_choices(
          histogram("vllm:request_params_n", "The parameter n of requests.", {1, 2, 5, 10, 20})),
      max_tokens(histogram("vllm:request_params_max_tokens", "The parameter max_tokens.",
                           count_buckets(max_model_len))),
      preemptions(histogram("vllm:request_num_preemptions", "Preemptions of a request.",
                            {0, 1, 2, 5, 10, 20})) {
  begin_labelled(info);
}

void ServeMetrics::Families::begin_labelled(const EngineInfo& info) {
  for (const FinishReason reason :
       {FinishReason::kStop, FinishReason::kLength, FinishReason::kAbort, FinishReason::kError}) {
    success(reason);
  }
  for (const char* request_type : {"chat_completions", "responses", "other"}) {
    for (const bool streaming : {false, true}) {
      for (const bool found : {false, true}) tool_parses({request_type, streaming, found});
    }
  }
  gauge("vllm:cache_config_info", "The configuration of the KV cache, as labels.",
        {{"block_size", std::to_string(info.block_size)},
         {"num_gpu_blocks", std::to_string(info.num_blocks)},
         {"num_cpu_blocks", "0"},
         {"kv_cache_bytes", std::to_string(info.kv_cache_bytes)}})
      .Set(1);
}

void ServeMetrics::Families::set_speculation(const RequestStats& sums, const Labels& engine) {
  raise_to(counter("vllm:spec_decode_num_drafts_total", "Proposals of one or more tokens.", engine),
           static_cast<double>(sums.num_drafts));
  raise_to(counter("vllm:spec_decode_num_draft_tokens_total", "Drafted tokens.", engine),
           static_cast<double>(sums.num_draft_tokens));
  raise_to(
      counter("vllm:spec_decode_num_accepted_tokens_total", "Accepted drafted tokens.", engine),
      static_cast<double>(sums.num_accepted_tokens));
  raise_to(counter("foretoken:spec_decode_num_accepted_branch_tokens_total",
                   "Accepted drafted tokens that only branches (num_branches) had.", engine),
           static_cast<double>(sums.num_accepted_branch_tokens));
  for (int i = 0; i < num_positions; ++i) {
    const Labels position = with(engine, {{"position", std::to_string(i)}});
    const auto at = static_cast<size_t>(i);
    raise_to(counter("vllm:spec_decode_num_accepted_tokens_per_pos_total",
                     "Accepted drafted tokens by position in the draft.", position),
             static_cast<double>(sums.num_accepted_tokens_per_pos[at]));
    raise_to(counter("foretoken:spec_decode_num_draft_tokens_per_pos_total",
                     "Drafted tokens by position in the draft.", position),
             static_cast<double>(sums.num_draft_tokens_per_pos[at]));
  }
  for (size_t i = 0; i < drafters.size(); ++i) {
    const Labels drafter = with(engine, {{"drafter", drafters[i]}});
    raise_to(counter("foretoken:spec_decode_num_draft_tokens_by_drafter_total",
                     "Drafted tokens by the drafter that made them.", drafter),
             static_cast<double>(sums.num_draft_tokens_by_drafter[i]));
    raise_to(counter("foretoken:spec_decode_num_accepted_tokens_by_drafter_total",
                     "Accepted drafted tokens by the drafter that made them.", drafter),
             static_cast<double>(sums.num_accepted_tokens_by_drafter[i]));
  }
}

void ServeMetrics::Families::set_prefix_cache(const EngineStats& stats, const Labels& engine) {
  const RequestStats& sums = stats.requests;
  raise_to(
      counter("vllm:prefix_cache_queries_total", "Tokens looked up in the prefix cache.", engine),
      static_cast<double>(sums.num_prompt_tokens));
  raise_to(counter("vllm:prefix_cache_hits_total", "Tokens found in the prefix cache.", engine),
           static_cast<double>(sums.num_cached_tokens));
  raise_to(
      counter("vllm:external_prefix_cache_queries_total",
              "Tokens looked up in host memory, as the prefix cache did not have them.", engine),
      static_cast<double>(stats.offload.num_queried_tokens));
  raise_to(counter("vllm:external_prefix_cache_hits_total", "Tokens found in host memory.", engine),
           static_cast<double>(stats.offload.num_hit_tokens));
  const std::string moved = "foretoken:kv_offload_bytes_total";
  const std::string moved_help = "Bytes of KV blocks moved to host memory (out) and back (in).";
  raise_to(counter(moved, moved_help, with(engine, {{"direction", "out"}})),
           static_cast<double>(stats.offload.bytes_out));
  raise_to(counter(moved, moved_help, with(engine, {{"direction", "in"}})),
           static_cast<double>(stats.offload.bytes_in));
  raise_to(
      counter("vllm:prompt_tokens_cached_total", "Tokens of prompts that were cached.", engine),
      static_cast<double>(sums.num_cached_tokens));
  const std::string by_source = "vllm:prompt_tokens_by_source_total";
  const auto computed = static_cast<double>(sums.num_prompt_tokens - sums.num_cached_tokens);
  raise_to(counter(by_source, "Tokens of prompts by source.",
                   with(engine, {{"source", "local_compute"}})),
           computed);
  raise_to(counter(by_source, "Tokens of prompts by source.",
                   with(engine, {{"source", "local_cache_hit"}})),
           static_cast<double>(sums.num_cached_tokens));
}

void ServeMetrics::Families::set_stats(const EngineStats& stats, const Labels& engine) {
  const RequestStats& sums = stats.requests;
  const auto waiting = static_cast<double>(stats.num_waiting_requests);
  gauge("vllm:num_requests_running", "Sequences that hold a slot of the engine.", engine)
      .Set(static_cast<double>(stats.num_running_requests));
  gauge("vllm:num_requests_waiting", "Sequences that wait for one.", engine).Set(waiting);
  const std::string by_reason = "vllm:num_requests_waiting_by_reason";
  gauge(by_reason, "Waiting sequences by reason.", with(engine, {{"reason", "capacity"}}))
      .Set(waiting);
  gauge(by_reason, "Waiting sequences by reason.", with(engine, {{"reason", "deferred"}})).Set(0);
  // Boards of vLLM show an engine without it as down.
  constexpr const char* kSleepStates[] = {"awake", "weights_offloaded", "discard_all"};  // by level
  for (int level = 0; level < 3; ++level) {
    gauge("vllm:engine_sleep_state",
          "1 for the state of the engine: awake, asleep with weights in host memory, or without.",
          with(engine, {{"sleep_state", kSleepStates[level]}}))
        .Set(level == stats.sleep_level ? 1 : 0);
  }
  const auto used = static_cast<double>(stats.num_total_blocks - stats.num_free_blocks);
  gauge("vllm:kv_cache_usage_perc", "Share of the KV blocks in use; 1 is all.", engine)
      .Set(stats.num_total_blocks > 0 ? used / static_cast<double>(stats.num_total_blocks) : 0);
  raise_to(counter("vllm:num_preemptions_total", "Preemptions.", engine),
           static_cast<double>(sums.num_preemptions));
  raise_to(counter("vllm:prompt_tokens_total", "Tokens of prompts.", engine),
           static_cast<double>(sums.num_prompt_tokens));
  raise_to(counter("vllm:generation_tokens_total", "Tokens of outputs.", engine),
           static_cast<double>(sums.num_output_tokens));
  set_prefix_cache(stats, engine);
  raise_to(counter("foretoken:steps_total", "Steps of the engine.", engine),
           static_cast<double>(stats.num_steps));
  raise_to(counter("foretoken:steps_in_lanes_total",
                   "Steps whose rows went through the layers in two lanes.", engine),
           static_cast<double>(stats.num_steps_in_lanes));
  step_tokens.set(with(base, engine), stats.step_tokens);
  if (num_positions > 0) set_speculation(sums, engine);
}

ServeMetrics::ServeMetrics(const std::string& model_name, const EngineInfo& info, int max_loras)
    : families_(std::make_unique<Families>(model_name, info)), max_loras_(max_loras) {}

ServeMetrics::~ServeMetrics() = default;

void ServeMetrics::add_request(const Request& request) {
  const std::lock_guard lock(meters_mutex_);
  meters_.try_emplace(request.request_id, *this, request);
}

void ServeMetrics::drop_request(const std::string& request_id) {
  const std::lock_guard lock(meters_mutex_);
  meters_.erase(request_id);
}

void ServeMetrics::add_output(const RequestOutput& output) {
  const std::lock_guard lock(meters_mutex_);
  const auto found = meters_.find(output.request_id);
  if (found == meters_.end()) return;
  found->second.add(output);
  if (output.request_finished) meters_.erase(found);
}

void ServeMetrics::count_rejection(const std::string& reason) {
  families_
      ->counter("vllm:admission_rejections_total", "Requests refused for want of room.",
                {{"reason", reason}})
      .Increment();
}

void ServeMetrics::count_tool_parse(const ToolParse& parse) {
  families_->tool_parses(parse).Increment();
}

void ServeMetrics::find_adapters(bool some_wait, std::set<std::string>* running,
                                 std::set<std::string>* waiting) {
  const std::lock_guard lock(meters_mutex_);
  for (const auto& [id, meter] : meters_) {
    if (meter.adapter().empty()) continue;
    (some_wait && !meter.has_begun() ? waiting : running)->insert(meter.adapter());
  }
}

std::string ServeMetrics::text(const EngineStats& stats,
                               const std::optional<otlp::SpanCounts>& spans) {
  const std::lock_guard lock(families_->scrape_mutex);
  const auto label = [this](size_t engine) {
    return Labels{{"engine", std::to_string(families_->first_engine + engine)}};
  };
  if (stats.engines.empty()) families_->set_stats(stats, label(0));
  for (size_t i = 0; i < stats.engines.size(); ++i) {
    families_->set_stats(stats.engines[i], label(i));
  }
  std::vector<prometheus::MetricFamily> all = families_->registry.Collect();
  std::vector<prometheus::MetricFamily> steps = families_->step_tokens.Collect();
  std::move(steps.begin(), steps.end(), std::back_inserter(all));
  add_older_names(&all);
  for (std::vector<prometheus::MetricFamily> more : {http_.collect(), process_metrics()}) {
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }
  if (max_loras_ > 0) {
    std::set<std::string> running;
    std::set<std::string> waiting;
    find_adapters(stats.num_waiting_requests > 0, &running, &waiting);
    all.push_back(adapter_family(max_loras_, running, waiting));
  }
  if (spans) all.push_back(span_family(*spans));
  order_metrics(&all);
  std::ostringstream page;
  prometheus::TextSerializer().Serialize(page, all);
  return with_float_bounds(page.str());
}

RequestMeter::RequestMeter(ServeMetrics& metrics, const Request& request)
    : metrics_(metrics),
      adapter_(request.adapter),
      start_(std::chrono::steady_clock::now()),
      max_tokens_(request.sampling.max_tokens),
      num_choices_(request.sampling.n),
      first_token_(static_cast<size_t>(std::max(request.sampling.n, 1))),
      last_token_(first_token_.size()) {}

bool RequestMeter::has_begun() const {
  return std::ranges::any_of(first_token_, [](Time time) { return time != Time{}; });
}

void RequestMeter::add(const RequestOutput& output) {
  const Time now = std::chrono::steady_clock::now();
  if (!output.token_ids.empty()) count_tokens(output, now);
  if (output.finished) count_end(output, now);
}

void RequestMeter::count_tokens(const RequestOutput& output, Time now) {
  const auto choice = static_cast<size_t>(output.index);
  const ServeMetrics::Families& families = *metrics_.families_;
  if (first_token_[choice] == Time{}) {
    first_token_[choice] = now;
    families.first_token.Observe(seconds_between(start_, now));
  } else {
    families.inter_token.Observe(seconds_between(last_token_[choice], now));
  }
  last_token_[choice] = now;
}

void RequestMeter::count_end(const RequestOutput& output, Time now) {
  ServeMetrics::Families& families = *metrics_.families_;
  const RequestStats& stats = output.stats;
  families.success(output.finish_reason).Increment();
  families.latency.Observe(seconds_between(start_, now));
  families.generation_tokens.Observe(static_cast<double>(stats.num_output_tokens));
  families.preemptions.Observe(static_cast<double>(stats.num_preemptions));
  longest_choice_ = std::max(longest_choice_, stats.num_output_tokens);
  if (output.index == 0) {
    families.prompt_tokens.Observe(static_cast<double>(stats.num_prompt_tokens));
    families.prefill_computed.Observe(
        static_cast<double>(stats.num_prompt_tokens - stats.num_cached_tokens));
    families.num_choices.Observe(num_choices_);
    families.max_tokens.Observe(max_tokens_);
  }
  if (output.request_finished) {
    families.longest_generation.Observe(static_cast<double>(longest_choice_));
  }
  const auto choice = static_cast<size_t>(output.index);
  if (first_token_[choice] == Time{}) return;
  const double queued = static_cast<double>(stats.queue_ns) * 1e-9;
  const double until_first = seconds_between(start_, first_token_[choice]);
  const double decode = seconds_between(first_token_[choice], last_token_[choice]);
  families.queue_time.Observe(queued);
  families.prefill_time.Observe(std::max(until_first - queued, 0.0));
  families.decode_time.Observe(decode);
  families.inference_time.Observe(std::max(until_first - queued, 0.0) + decode);
  if (stats.num_output_tokens > 1) {
    families.time_per_token.Observe(decode / static_cast<double>(stats.num_output_tokens - 1));
  }
}

}  // namespace foretoken
