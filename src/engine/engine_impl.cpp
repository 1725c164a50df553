#include "engine/engine_impl.h"

#include <algorithm>
#include <condition_variable>

#include "base/log.h"
#include "engine/chat_arguments.h"
#include "engine/output_collector.h"
#include "text/chat_content.h"

namespace foretoken {
namespace {

constexpr const char* kNoWaitInCallback =
    "generate() was called from an output callback of this engine, for which it would wait; use "
    "submit or generate_async there";

}  // namespace

EngineImpl::~EngineImpl() {
  if (grammars_ != nullptr) grammars_->stop_compiling();
  if (loop_ != nullptr) loop_->stop();
  if (outputs_ != nullptr) outputs_->join();
  if (loop_ != nullptr && loop_->device_hangs()) {
    abandon_device();
  } else if (queue_ != nullptr) {
    (void)queue_->drain();
    write_trace();
  }
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
    std::unique_ptr<ModelRunner> runner;
  };
  static std::mutex mutex;
  static auto* const abandoned = new std::vector<Parts>();
  FT_LOG(warn, "the memory of a device that hangs is kept until the process ends");
  std::lock_guard lock(mutex);
  abandoned->push_back({std::move(device_), std::move(queue_), std::move(model_),
                        std::move(drafters_), std::move(kv_cache_), std::move(window_cache_),
                        std::move(memory_), std::move(runner_)});
}

Status EngineImpl::submit(Request request, OutputCallback callback, std::string* request_id) {
  FT_RETURN_IF_ERROR(loop_->error());
  const auto num_choices = static_cast<uint64_t>(std::max(request.sampling.n, 1));
  FT_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<RequestState>> states,
                      build_request(std::move(request), std::move(callback), limits_,
                                    tokenizer_.get(), next_number_.fetch_add(num_choices)));
  const Sequence& sequence = states.front()->sequence;
  FT_RETURN_IF_ERROR(scheduler_->check_fits(sequence.prompt_len, sequence.max_len));
  RequestGroup& group = *states.front()->group;
  const std::string id = group.request.request_id;
  {
    std::lock_guard lock(requests_mutex_);
    if (!requests_.emplace(id, &group).second) {
      return invalid_argument("request_id '" + id + "' is in use; choose another");
    }
  }
  if (request_id != nullptr) *request_id = id;
  if (group.request.sampling.structured_outputs) {
    grammars_->prepare(std::move(states));
    return {};
  }
  if (push(states)) return {};
  std::lock_guard lock(requests_mutex_);
  requests_.erase(id);
  return aborted("the engine is shutting down; it takes no more requests");
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

std::vector<RequestOutput> EngineImpl::generate(std::vector<Request> requests) {
  std::vector<OutputCollector> collectors(requests.begin(), requests.end());
  std::mutex mutex;
  std::condition_variable all_done;
  size_t num_open = requests.size();
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto collect = [&, i](const RequestOutput& output) {
      collectors[i].add(output);
      if (!output.request_finished) return;
      std::lock_guard lock(mutex);
      if (--num_open == 0) all_done.notify_all();
    };
    const Status status = outputs_->on_output_thread()
                              ? invalid_argument(kNoWaitInCallback)
                              : submit(std::move(requests[i]), collect, nullptr);
    if (status.ok()) continue;
    collectors[i].fail(status);
    std::lock_guard lock(mutex);
    --num_open;
  }
  std::unique_lock lock(mutex);
  all_done.wait(lock, [&] { return num_open == 0; });
  std::vector<RequestOutput> outputs;
  for (OutputCollector& collector : collectors) {
    for (RequestOutput& output : collector.take()) outputs.push_back(std::move(output));
  }
  return outputs;
}

std::future<std::vector<RequestOutput>> EngineImpl::generate_async(Request request) {
  auto promise = std::make_shared<std::promise<std::vector<RequestOutput>>>();
  auto collector = std::make_shared<OutputCollector>(request);
  std::future<std::vector<RequestOutput>> future = promise->get_future();
  const Status status = submit(
      std::move(request),
      [promise, collector](const RequestOutput& output) {
        collector->add(output);
        if (output.request_finished) promise->set_value(collector->take());
      },
      nullptr);
  if (!status.ok()) {
    collector->fail(status);
    promise->set_value(collector->take());
  }
  return future;
}

SamplingParams EngineImpl::default_sampling_params() const { return generation_.sampling; }

Status EngineImpl::render_chat(const std::string& messages_json, const std::string& arguments_json,
                               std::string* prompt) const {
  if (!chat_template_) {
    return unsupported(
        "the model folder has no chat template; name one with --chat-template, add a chat_template "
        "to tokenizer_config.json, or give a plain prompt");
  }
  FT_ASSIGN_OR_RETURN(const ChatArguments arguments, parse_chat_arguments(arguments_json));
  const ChatTemplate::Options options{.add_generation_prompt = arguments.add_generation_prompt,
                                      .continue_final_message = arguments.continue_final_message};
  FT_ASSIGN_OR_RETURN(
      const std::string messages,
      with_content_format(messages_json, chat_template_->content_format(arguments.variables)));
  FT_ASSIGN_OR_RETURN(*prompt, chat_template_->render(messages, arguments.variables, options));
  return {};
}

Status EngineImpl::encode(const std::string& text, bool add_special_tokens,
                          std::vector<int32_t>* ids) const {
  if (tokenizer_ == nullptr) return unsupported("the model has no tokenizer.json; use token ids");
  FT_ASSIGN_OR_RETURN(*ids, tokenizer_->encode(text, add_special_tokens));
  return {};
}

Status EngineImpl::decode(const std::vector<int32_t>& ids, bool skip_special_tokens,
                          std::string* text) const {
  if (tokenizer_ == nullptr) return unsupported("the model has no tokenizer.json; use token ids");
  FT_ASSIGN_OR_RETURN(*text, tokenizer_->decode(ids, skip_special_tokens));
  return {};
}

EngineStats EngineImpl::stats() const {
  EngineStats stats;
  stats.num_steps = loop_->num_steps();
  stats.timing = loop_->timing();
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
  return stats;
}

Status make_engine(const EngineConfig& config, std::unique_ptr<Engine>* engine) {
  FT_ASSIGN_OR_RETURN(std::unique_ptr<EngineImpl> made, EngineImpl::create(config, TestHooks{}));
  *engine = std::move(made);
  return {};
}

}  // namespace foretoken
