#include "engine/engine_impl.h"

#include <algorithm>
#include <iterator>

#include "base/log.h"
#include "compat/compat.h"
#include "engine/request/engine_number.h"
#include "engine/request/generate_call.h"

namespace foretoken {
namespace {

constexpr const char* kNoWaitInCallback =
    "generate() was called from an output callback of this engine, for which it would wait; use "
    "submit or generate_async there";
constexpr const char* kShutsDown = "the engine is shutting down; it takes no more requests";
constexpr size_t kTracedOps = 131072;

}  // namespace

EngineImpl::~EngineImpl() {
  if (grammars_ != nullptr) grammars_->stop_compiling();
  if (loop_ != nullptr) loop_->stop();
  if (outputs_ != nullptr) outputs_->join();
  // The loop has sent the last plan; without one the others would wait for plans.
  if (loop_ == nullptr && !ended_)
    ranks_.abort(aborted("rank " + std::to_string(ranks_.rank()) + " ended"));
  local_ranks_.reset();
  if (loop_ != nullptr && loop_->device_hangs()) {
    abandon_device();
  } else if (queue_ != nullptr) {
    const Status drained = queue_->drain();
    // Without a loop nothing was learned, and the statistics may be those of measurements; before
    // it slept they were handed over.
    const bool has_learned = loop_ != nullptr && sleep_level_.load() == 0;
    if (drained.ok() && keeper_ != nullptr && has_learned) keeper_->finish();
    write_trace();
  }
}

Status EngineImpl::start_trace(const EngineConfig& config) {
  if (config.profile.empty() && profiler_ranges_.begin == nullptr) return {};
  FT_ASSIGN_OR_RETURN(trace_,
                      StepTrace::start(config.profile, *device_, *queue_, profiler_ranges_));
  if (config.profile.empty() || !config.enforce_eager) return {};
  FT_ASSIGN_OR_RETURN(std::unique_ptr<OpTracer> tracer,
                      OpTracer::create(*device_, std::move(queue_), kTracedOps));
  op_tracer_ = tracer.get();
  queue_ = std::move(tracer);
  return {};
}

// There is nobody left to return an error to.
void EngineImpl::write_trace() {
  if (trace_ == nullptr || loop_ == nullptr) return;
  const Status status = trace_->finish(op_tracer_);
  if (!status.ok()) FT_LOG(error, "{}", status.message());
}

// A wait for the device would not end, and what it still uses cannot be freed.
void EngineImpl::abandon_device() {
  struct Parts {
    std::unique_ptr<Device> device;
    std::unique_ptr<Queue> queue;
    std::unique_ptr<Model> model;
    std::vector<std::unique_ptr<Drafter>> drafters;
    std::unique_ptr<KvCache> kv_cache;
    std::unique_ptr<KvCache> window_cache;
    std::unique_ptr<StepMemory> memory;
    std::unique_ptr<KvOffload> kv_offload;
    std::unique_ptr<StateStore> state_store;
    std::unique_ptr<ModelRunner> runner;
  };
  static std::mutex mutex;
  static auto* const abandoned = new std::vector<Parts>();
  FT_LOG(warn, "the memory of a device that hangs is kept until the process ends");
  std::lock_guard lock(mutex);
  abandoned->push_back({std::move(device_), std::move(queue_), std::move(model_),
                        std::move(drafters_), std::move(kv_cache_), std::move(window_cache_),
                        std::move(memory_), std::move(kv_offload_), std::move(state_store_),
                        std::move(runner_)});
}

Result<GrammarService::Choices> EngineImpl::admit(Request request, OutputCallback callback) {
  FT_RETURN_IF_ERROR(loop_->error());
  FT_RETURN_IF_ERROR(check_engine_number(request, 1));
  const auto num_choices = static_cast<uint64_t>(std::max(request.sampling.n, 1));
  FT_ASSIGN_OR_RETURN(GrammarService::Choices choices,
                      build_request(std::move(request), std::move(callback), limits_,
                                    texts_.tokenizer(), next_number_.fetch_add(num_choices)));
  const Sequence& sequence = choices.front()->sequence;
  FT_RETURN_IF_ERROR(scheduler_->check_fits(sequence.prompt_len, sequence.max_len));
  FT_RETURN_IF_ERROR(scheduler_->check_whole(sequence));
  RequestGroup& group = *choices.front()->group;
  std::lock_guard lock(requests_mutex_);
  if (requests_.emplace(group.request.request_id, &group).second) return choices;
  return invalid_argument("request_id '" + group.request.request_id +
                          "' is in use; choose another");
}

Status EngineImpl::submit(Request request, OutputCallback callback, std::string* request_id) {
  FT_ASSIGN_OR_RETURN(GrammarService::Choices choices,
                      admit(std::move(request), std::move(callback)));
  const std::string id = choices.front()->group->request.request_id;
  if (request_id != nullptr) *request_id = id;
  if (choices.front()->group->request.sampling.structured_outputs) {
    grammars_->prepare(std::move(choices));
    return {};
  }
  if (push(choices)) return {};
  forget(choices);
  return aborted(kShutsDown);
}

// The numbers of requests whose outputs will never come.
void EngineImpl::forget(const GrammarService::Choices& choices) {
  std::lock_guard lock(requests_mutex_);
  for (const auto& choice : choices) requests_.erase(choice->group->request.request_id);
}

bool EngineImpl::push(GrammarService::Choices& choices) {
  for (size_t i = 1; i < choices.size(); ++i) choices[i]->next_submitted = choices[i - 1].get();
  if (!loop_->intake().push_chain(choices.back().get(), choices.front().get())) return false;
  for (std::unique_ptr<RequestState>& choice : choices) (void)choice.release();
  return true;
}

void EngineImpl::abort(const std::string& request_id) {
  std::lock_guard lock(requests_mutex_);
  const auto found = requests_.find(request_id);
  if (found == requests_.end()) return;
  found->second->end_requested.store(true);
  loop_->intake().announce_end();
}

// As many requests as fill a step are handed over at once, so that one plan sees them together and
// equal calls run in equal batches.
std::vector<RequestOutput> EngineImpl::generate(std::vector<Request> requests) {
  GenerateCall call(requests);
  GrammarService::Choices together;
  std::vector<size_t> waiting;
  int64_t num_ids = 0;
  const auto hand_over = [&] {
    if (!together.empty() && !push(together)) {
      forget(together);
      for (const size_t index : waiting) call.fail(index, aborted(kShutsDown));
    }
    together.clear();
    waiting.clear();
    num_ids = 0;
  };
  for (size_t i = 0; i < requests.size(); ++i) {
    if (outputs_->on_output_thread()) {
      call.fail(i, invalid_argument(kNoWaitInCallback));
      continue;
    }
    auto choices = admit(std::move(requests[i]), call.callback(i));
    if (!choices.ok()) {
      call.fail(i, choices.status());
    } else if (choices.value().front()->group->request.sampling.structured_outputs) {
      grammars_->prepare(std::move(choices).value());
    } else {
      waiting.push_back(i);
      num_ids += choices.value().front()->sequence.prompt_len;
      std::move(choices.value().begin(), choices.value().end(), std::back_inserter(together));
      if (num_ids >= memory_->limits().max_tokens) hand_over();
    }
  }
  hand_over();
  return call.take();
}

std::future<std::vector<RequestOutput>> EngineImpl::generate_async(Request request) {
  return future_outputs(*this, std::move(request));
}

SamplingParams EngineImpl::default_sampling_params() const { return generation_.sampling; }

Status EngineImpl::load_adapter(const LoraModule& adapter, bool replace) {
  if (adapters_ == nullptr) return Engine::load_adapter(adapter, replace);
  return adapters_->load(adapter, replace);
}

Status EngineImpl::unload_adapter(const std::string& name) {
  if (adapters_ == nullptr) return Engine::unload_adapter(name);
  return adapters_->unload(name);
}

std::vector<AdapterInfo> EngineImpl::adapters() const {
  return adapters_ != nullptr ? adapters_->list() : std::vector<AdapterInfo>();
}

EngineStats EngineImpl::stats() const {
  EngineStats stats;
  stats.num_steps = loop_->num_steps();
  stats.num_steps_in_lanes = loop_->num_steps_in_lanes();
  stats.timing = loop_->timing();
  stats.timing.exchange_ns = ranks_.exchange_ns() - start_exchange_ns_;
  stats.step_tokens = loop_->step_tokens();
  stats.num_finished_requests = outputs_->num_finished();
  stats.requests = outputs_->totals();
  for (size_t i = 0; i < drafters_.size(); ++i) {
    stats.drafters.push_back(outputs_->totals_of(static_cast<int>(i)));
  }
  stats.num_running_requests = loop_->occupancy().running.load();
  stats.num_waiting_requests = loop_->occupancy().waiting.load();
  stats.num_free_blocks = loop_->occupancy().free_blocks.load();
  stats.num_total_blocks = info_.num_blocks;
  stats.num_free_slots = loop_->occupancy().free_slots.load();
  stats.num_total_slots = info_.max_num_seqs;
  stats.sleep_level = sleep_level_.load();
  const KvOffload::Counts& host = loop_->occupancy().host;
  stats.offload = {.num_queried_tokens = host.queried_tokens.load(),
                   .num_hit_tokens = host.hit_tokens.load(),
                   .bytes_out = 0,
                   .bytes_in = 0};
  if (kv_offload_ == nullptr) return stats;
  stats.offload.bytes_out = kv_offload_->bytes_of(host.moved_out) * ranks_.size();
  stats.offload.bytes_in = kv_offload_->bytes_of(host.moved_in) * ranks_.size();
  return stats;
}

Status Engine::load_adapter(const LoraModule&, bool) {
  return compat({.lora = false, .loads_adapter = true});
}

Status Engine::unload_adapter(const std::string& name) {
  return not_found("the adapter '" + name + "' cannot be found; none is loaded");
}

}  // namespace foretoken
