#include "engine/parallel/data_parallel_engine.h"

#include <algorithm>
#include <functional>
#include <future>
#include <numeric>
#include <thread>

#include "base/check.h"
#include "compat/compat.h"
#include "device/cpu/cpu_quota.h"
#include "device/device_traits.h"
#include "engine/parallel/start_engines.h"
#include "engine/request/engine_number.h"
#include "engine/request/generate_call.h"
#include "engine/request/parameters/slot_params.h"
#include "engine/start/parallel_checks.h"

namespace foretoken {
namespace {

// Set while an output callback of a DataParallelEngine runs on this thread.
thread_local const void* inside_callback = nullptr;

struct CallbackScope {
  explicit CallbackScope(const void* engine) { inside_callback = engine; }
  ~CallbackScope() { inside_callback = nullptr; }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;
};

// As many hashes as the engine has blocks; the router's own bound on memory, 64 MB, is far above.
int64_t blocks_to_remember(const EngineInfo& info) {
  return std::clamp<int64_t>(info.num_blocks, 1, 1 << 20);
}

std::vector<const EngineInfo*> infos_of(const std::vector<std::unique_ptr<Engine>>& engines) {
  std::vector<const EngineInfo*> infos;
  for (const auto& engine : engines) infos.push_back(&engine->info());
  return infos;
}

// Every choice of every request gets the error.
std::vector<RequestOutput> refuse_all(const std::vector<Request>& requests, const Status& why) {
  GenerateCall call(requests);
  for (size_t i = 0; i < requests.size(); ++i) call.fail(i, why);
  return call.take();
}

Status no_waiting() {
  return invalid_argument(
      "generate was called from an output callback, which it would wait for; use submit or "
      "generate_async");
}

}  // namespace

DataParallelEngine::DataParallelEngine(std::vector<std::unique_ptr<Engine>> engines, uint64_t seed,
                                       int num_here, std::unique_ptr<Engine> texts)
    : texts_(std::move(texts)),
      engines_(std::move(engines)),
      seed_(seed),
      num_here_(num_here >= 0 ? num_here : static_cast<int>(engines_.size())),
      info_(sum_of(infos_of(engines_))),
      router_(static_cast<int>(engines_.size()), engines_.front()->info().block_size,
              blocks_to_remember(engines_.front()->info())) {}

// Callbacks use this object until the last engine has ended.
DataParallelEngine::~DataParallelEngine() { end_together(engines_); }

Result<std::unique_ptr<Engine>> DataParallelEngine::create(const EngineConfig& config) {
  FT_ASSIGN_OR_RETURN(StartedEngines started, start_engines(config, process_environment));
  return std::unique_ptr<Engine>(std::make_unique<DataParallelEngine>(
      std::move(started.engines), config.seed, started.num_here, std::move(started.texts)));
}

// Processors are code, and run in this process.
int DataParallelEngine::num_candidates(const Request& request) const {
  return request.sampling.logits_processors.empty() ? static_cast<int>(engines_.size()) : num_here_;
}

Status DataParallelEngine::check_engines(const Request& request) const {
  if (!request.sampling.logits_processors.empty()) {
    FT_RETURN_IF_ERROR(compat({.logits_processors = true, .num_local_engines = num_here_}));
  }
  return check_engine_number(request, num_candidates(request));
}

void DataParallelEngine::prepare(Request& request) {
  const auto num_choices = static_cast<uint64_t>(std::max(request.sampling.n, 1));
  const uint64_t number = next_number_.fetch_add(num_choices);
  if (request.request_id.empty()) request.request_id = "req-" + std::to_string(number);
  if (!request.sampling.seed) request.sampling.seed = seed_of_request(seed_, number);
  if (!request.prompt_token_ids.empty() || request.prompt.empty()) return;
  // Where it fails, the engine says so.
  std::vector<int32_t> ids;
  if (encode(request.prompt, request.add_special_tokens, &ids).ok()) {
    request.prompt_token_ids = std::move(ids);
  }
}

PrefixRouter::Route DataParallelEngine::route(const Request& request, int num_sequences) {
  const bool is_named = request.data_parallel_rank.has_value();
  return router_.choose(request.prompt_token_ids, router_salt(request), num_sequences,
                        is_named ? 1 : num_candidates(request),
                        request.data_parallel_rank.value_or(0));
}

Status DataParallelEngine::submit(Request request, OutputCallback callback,
                                  std::string* request_id) {
  if (request.prompt.empty() && request.prompt_token_ids.empty()) FT_RETURN_IF_ERROR(health());
  FT_RETURN_IF_ERROR(check_engines(request));
  prepare(request);
  const std::string id = request.request_id;
  for (size_t tries = 1;; ++tries) {
    auto live = std::make_shared<Live>();
    live->id = id;
    live->num_sequences = std::max(request.sampling.n, 1);
    live->route = route(request, live->num_sequences);
    const Status status = submit_to(live, request, callback);
    if (status.ok() && request_id != nullptr) *request_id = id;
    if (status.code() != StatusCode::kInternal) return status;
    router_.close(live->route.engine);
    if (tries == engines_.size() || request.data_parallel_rank) return status;
  }
}

Status DataParallelEngine::submit_to(const std::shared_ptr<Live>& live, Request request,
                                     OutputCallback callback) {
  {
    const std::lock_guard lock(live_mutex_);
    if (!engine_of_.emplace(live->id, live->route.engine).second) {
      router_.ended(live->route, live->num_sequences, false);
      return invalid_argument("request_id '" + live->id + "' is in use; choose another");
    }
  }
  request.data_parallel_rank.reset();
  const Status status = engines_[static_cast<size_t>(live->route.engine)]->submit(
      std::move(request),
      [this, live, callback = std::move(callback)](const RequestOutput& output) {
        const std::lock_guard lock(callback_mutex_);
        const CallbackScope scope(this);
        note(*live, output);
        callback(output);
      });
  if (!status.ok()) end(*live);
  return status;
}

void DataParallelEngine::note(Live& live, const RequestOutput& output) {
  if (!live.prompt_done && !live.ended && !output.token_ids.empty()) {
    live.prompt_done = true;
    router_.prompt_done(live.route);
  }
  if (output.request_finished) end(live);
}

void DataParallelEngine::end(Live& live) {
  if (live.ended) return;
  live.ended = true;
  router_.ended(live.route, live.num_sequences, live.prompt_done);
  const std::lock_guard lock(live_mutex_);
  engine_of_.erase(live.id);
}

void DataParallelEngine::abort(const std::string& request_id) {
  int engine = -1;
  {
    const std::lock_guard lock(live_mutex_);
    const auto found = engine_of_.find(request_id);
    if (found == engine_of_.end()) return;
    engine = found->second;
  }
  engines_[static_cast<size_t>(engine)]->abort(request_id);
}

// Each engine gets its share in one call, so that equal calls run in equal batches there.
std::vector<RequestOutput> DataParallelEngine::generate(std::vector<Request> requests) {
  if (inside_callback == this) return refuse_all(requests, no_waiting());
  for (const Request& request : requests) {
    const Status runs = check_engines(request);
    if (!runs.ok()) return refuse_all(requests, runs);
  }
  std::vector<Share> shares(engines_.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    prepare(requests[i]);
    const int choices = std::max(requests[i].sampling.n, 1);
    const PrefixRouter::Route chosen = route(requests[i], choices);
    Share& share = shares[static_cast<size_t>(chosen.engine)];
    share.parts.push_back({i, chosen, choices});
    share.requests.push_back(std::move(requests[i]));
    share.requests.back().data_parallel_rank.reset();
  }
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < engines_.size(); ++i) {
    if (shares[i].parts.empty()) continue;
    threads.emplace_back(
        [&, i] { shares[i].outputs = engines_[i]->generate(std::move(shares[i].requests)); });
  }
  for (std::jthread& thread : threads) thread.join();
  return in_order(shares, requests.size());
}

// In order of requests, then of choices.
std::vector<RequestOutput> DataParallelEngine::in_order(std::vector<Share>& shares,
                                                        size_t num_requests) {
  std::vector<std::vector<RequestOutput>> by_request(num_requests);
  for (Share& share : shares) {
    auto next = share.outputs.begin();
    for (const Share::Part& part : share.parts) {
      router_.ended(part.route, part.num_choices, false);
      const auto left = std::distance(next, share.outputs.end());
      const auto end = next + std::min<std::ptrdiff_t>(part.num_choices, left);
      std::move(next, end, std::back_inserter(by_request[part.request]));
      next = end;
    }
  }
  std::vector<RequestOutput> ordered;
  for (auto& outputs : by_request) {
    std::move(outputs.begin(), outputs.end(), std::back_inserter(ordered));
  }
  return ordered;
}

std::future<std::vector<RequestOutput>> DataParallelEngine::generate_async(Request request) {
  return future_outputs(*this, std::move(request));
}

Status DataParallelEngine::health() {
  for (const auto& engine : engines_) {
    // An engine that has failed says so before it finds the request empty.
    const Status status = engine->submit(Request(), nullptr);
    if (status.code() != StatusCode::kInvalidArgument) return status;
  }
  return {};
}

SamplingParams DataParallelEngine::default_sampling_params() const {
  return engines_.front()->default_sampling_params();
}

// On all or on none: what one engine refuses, those before it forget again.
Status DataParallelEngine::load_adapter(const LoraModule& adapter, bool replace) {
  const std::lock_guard lock(adapters_mutex_);
  for (size_t i = 0; i < engines_.size(); ++i) {
    const Status status = engines_[i]->load_adapter(adapter, replace);
    if (status.ok()) continue;
    for (size_t before = 0; before < i; ++before) {
      (void)engines_[before]->unload_adapter(adapter.name);
    }
    return status;
  }
  return {};
}

Status DataParallelEngine::unload_adapter(const std::string& name) {
  const std::lock_guard lock(adapters_mutex_);
  Status status;
  for (const auto& engine : engines_) {
    const Status own = engine->unload_adapter(name);
    if (status.ok()) status = own;
  }
  return status;
}

std::vector<AdapterInfo> DataParallelEngine::adapters() const {
  return engines_.front()->adapters();
}

Status DataParallelEngine::sleep(int level, bool ends_requests, int64_t* bytes,
                                 const std::stop_token& recall) {
  return sleeps_.sleep(level, ends_requests, bytes, recall);
}

Status DataParallelEngine::wake_up(const std::vector<std::string>& tags) {
  return sleeps_.wake_up(tags);
}

EngineStats DataParallelEngine::stats() const {
  std::vector<EngineStats> engines;
  for (const auto& engine : engines_) engines.push_back(engine->stats());
  return sum_of(std::move(engines));
}

EngineConfig config_of_host(const EngineConfig& config, int num_engines, int first_engine) {
  EngineConfig part = config;
  part.parallel.data_parallel_size = num_engines;
  part.parallel.nnodes = 1;
  part.parallel.node_rank = 0;
  part.parallel.data_parallel_size_local = -1;
  part.parallel.data_parallel_start_rank = first_engine;
  part.parallel.data_parallel_rank = -1;
  part.parallel.headless = false;
  return part;
}

EngineConfig config_of_engine(const EngineConfig& config, int index) {
  EngineConfig part = config;
  const ParallelConfig& parallel = config.parallel;
  const int ranks = parallel.tensor_parallel_size * parallel.pipeline_parallel_size;
  part.parallel.data_parallel_size = 1;
  part.parallel.data_parallel_start_rank = std::max(parallel.data_parallel_start_rank, 0) + index;
  // A device that is not numbered has no use for it.
  part.device_ordinal += index * ranks;
  const DeviceTraits* device = find_device_type(config.device);
  if (device != nullptr && device->uses_host_cores && config.cpu_threads == 0) {
    part.cpu_threads = std::max(1, cpu::usable_cores() / (parallel.data_parallel_size * ranks));
  }
  if (device != nullptr && device->uses_host_memory) {
    part.gpu_memory_utilization /= parallel.data_parallel_size;
  }
  if (parallel.master_port != 0) part.parallel.master_port += index;
  if (index == 0) return part;
  part.on_load_progress = nullptr;
  part.on_download_progress = nullptr;
  if (!config.profile.empty()) part.profile += "." + std::to_string(index);
  return part;
}

EngineInfo sum_of(const std::vector<const EngineInfo*>& infos) {
  EngineInfo sum = *infos.front();
  for (size_t i = 1; i < infos.size(); ++i) {
    const EngineInfo& info = *infos[i];
    sum.num_engines += info.num_engines;
    sum.max_num_seqs += info.max_num_seqs;
    sum.num_blocks += info.num_blocks;
    sum.weight_bytes += info.weight_bytes;
    sum.kv_cache_bytes += info.kv_cache_bytes;
    sum.num_host_blocks += info.num_host_blocks;
    sum.state_bytes += info.state_bytes;
    sum.num_state_snapshots += info.num_state_snapshots;
    sum.state_snapshot_bytes += info.state_snapshot_bytes;
    sum.token_page_bytes += info.token_page_bytes;
    sum.block_table_bytes += info.block_table_bytes;
    sum.drafter_bytes += info.drafter_bytes;
    sum.scratch_bytes += info.scratch_bytes;
    sum.load_seconds += info.load_seconds;
    sum.num_graphs += info.num_graphs;
    sum.graph_seconds += info.graph_seconds;
    // What one took is what a request can count on.
    sum.max_model_len = std::min(sum.max_model_len, info.max_model_len);
    for (const StartPhase& phase : info.start_phases) sum.start_phases.push_back(phase);
    for (size_t d = 0; d < sum.drafters.size(); ++d) {
      sum.drafters[d].kv_cache_bytes += info.drafters[d].kv_cache_bytes;
      sum.drafters[d].memory_bytes += info.drafters[d].memory_bytes;
    }
  }
  return sum;
}

namespace {

// Medians and percentiles of several engines cannot be added: the largest stands for all.
void add(const StepTiming& other, StepTiming& sum) {
  sum.num_steps += other.num_steps;
  sum.device_ns += other.device_ns;
  sum.draft_ns += other.draft_ns;
  sum.exchange_ns += other.exchange_ns;
  sum.num_gaps += other.num_gaps;
  sum.idle_ns += other.idle_ns;
  sum.idle_median_ns = std::max(sum.idle_median_ns, other.idle_median_ns);
  sum.idle_p99_ns = std::max(sum.idle_p99_ns, other.idle_p99_ns);
  sum.num_planned += other.num_planned;
  sum.plan_ns += other.plan_ns;
  sum.encode_ns += other.encode_ns;
  sum.submit_ns += other.submit_ns;
  sum.wait_ns += other.wait_ns;
  sum.reconcile_ns += other.reconcile_ns;
}

void add(const EngineStats& other, EngineStats& sum) {
  sum.num_steps += other.num_steps;
  sum.num_steps_in_lanes += other.num_steps_in_lanes;
  sum.num_finished_requests += other.num_finished_requests;
  add(other.timing, sum.timing);
  for (size_t i = 0; i < sum.step_tokens.num_steps.size(); ++i) {
    sum.step_tokens.num_steps[i] += other.step_tokens.num_steps[i];
  }
  sum.step_tokens.sum += other.step_tokens.sum;
  sum.requests += other.requests;
  // An engine of another process that ended before it told any has none.
  const size_t num_drafters = std::min(sum.drafters.size(), other.drafters.size());
  for (size_t i = 0; i < num_drafters; ++i) sum.drafters[i] += other.drafters[i];
  sum.num_running_requests += other.num_running_requests;
  sum.num_waiting_requests += other.num_waiting_requests;
  sum.num_free_blocks += other.num_free_blocks;
  sum.num_total_blocks += other.num_total_blocks;
  sum.num_free_slots += other.num_free_slots;
  sum.num_total_slots += other.num_total_slots;
  sum.sleep_level = std::max(sum.sleep_level, other.sleep_level);
  sum.offload.num_queried_tokens += other.offload.num_queried_tokens;
  sum.offload.num_hit_tokens += other.offload.num_hit_tokens;
  sum.offload.bytes_out += other.offload.bytes_out;
  sum.offload.bytes_in += other.offload.bytes_in;
}

}  // namespace

EngineStats sum_of(std::vector<EngineStats> engines) {
  EngineStats sum = engines.front();
  for (size_t i = 1; i < engines.size(); ++i) add(engines[i], sum);
  sum.engines = std::move(engines);
  return sum;
}

}  // namespace foretoken
