#include "engine/parallel/remote_engine.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/thread_role.h"
#include "engine/parallel/wire_archive.h"
#include "engine/parallel/wire_fields.h"
#include "engine/request/generate_call.h"

namespace foretoken {
namespace {

template <class... Values>
std::string pack(const Values&... values) {
  wire::Writer writer;
  writer(values...);
  return writer.take();
}

template <class... Values>
Status unpack(const std::string& bytes, Values&... values) {
  wire::Reader reader(bytes);
  reader(values...);
  return reader.status();
}

// The end of a choice that nobody computes any more.
RequestOutput failed_output(const std::string& id, size_t choice, const Status& why) {
  RequestOutput output;
  output.request_id = id;
  output.index = static_cast<int>(choice);
  output.finished = true;
  output.finish_reason = FinishReason::kError;
  output.status = why;
  return output;
}

}  // namespace

RemoteEngine::RemoteEngine(std::shared_ptr<group::ProcessGroup> processes, int index,
                           const Engine& texts)
    : processes_(std::move(processes)),
      index_(index),
      texts_(texts),
      requests_(processes_->group().take_front_link(index, group::FrontLane::kRequests)),
      outputs_(processes_->group().take_front_link(index, group::FrontLane::kOutputs)) {
  FT_CHECK(requests_ != nullptr && outputs_ != nullptr);
}

Result<std::unique_ptr<Engine>> RemoteEngine::meet(std::shared_ptr<group::ProcessGroup> processes,
                                                   int index, const Engine& texts) {
  std::unique_ptr<RemoteEngine> engine(new RemoteEngine(std::move(processes), index, texts));
  FT_RETURN_IF_ERROR(engine->wait_until_ready());
  RemoteEngine* self = engine.get();
  engine->receiver_ = std::thread([self] { self->receive(); });
  engine->deliverer_ = std::thread([self] { self->deliver(); });
  return std::unique_ptr<Engine>(std::move(engine));
}

Status RemoteEngine::wait_until_ready() {
  FT_ASSIGN_OR_RETURN(const FrontMessage message,
                      receive_message(*outputs_, "the start of engine " + std::to_string(index_)));
  if (message.kind != FrontKind::kInfo) return internal_error("an engine did not say what it is");
  return unpack(message.body, info_, adapters_);
}

RemoteEngine::~RemoteEngine() {
  if (!receiver_.joinable()) return;
  const Status sent = send(FrontKind::kEnd, 0, {});
  if (!sent.ok()) FT_LOG(debug, "engine {} had ended: {}", index_, sent.message());
  receiver_.join();
  if (deliverer_.joinable()) deliverer_.join();
}

Status RemoteEngine::submit(Request request, OutputCallback callback, std::string* request_id) {
  FT_CHECK(request.sampling.logits_processors.empty());
  const uint64_t number = next_number_.fetch_add(1);
  const bool has_callback = static_cast<bool>(callback);
  if (has_callback) {
    auto live = std::make_shared<Live>();
    live->callback = std::move(callback);
    live->id = request.request_id;
    live->finished.resize(static_cast<size_t>(std::clamp(request.sampling.n, 1, 128)));
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) return closed_;
    live_.emplace(number, std::move(live));
  }
  const Result<std::string> reply = call(FrontKind::kSubmit, number, pack(request));
  Status status = reply.status();
  std::string id;
  if (reply.ok()) {
    const Status read = unpack(reply.value(), status, id);
    if (!read.ok()) status = read;
  }
  const std::lock_guard lock(mutex_);
  const auto live = live_.find(number);
  if (status.ok()) {
    if (live != live_.end()) live->second->id = id;
    if (request_id != nullptr) *request_id = id;
    return {};
  }
  // One whose outputs tell of the group's end was submitted.
  if (has_callback && !reply.ok() && !closed_.ok()) return {};
  if (live != live_.end()) live_.erase(live);
  return status;
}

void RemoteEngine::abort(const std::string& request_id) {
  const Status sent = send(FrontKind::kAbort, 0, pack(request_id));
  if (!sent.ok()) FT_LOG(debug, "engine {} has ended: {}", index_, sent.message());
}

std::vector<RequestOutput> RemoteEngine::generate(std::vector<Request> requests) {
  const Result<std::string> reply =
      call(FrontKind::kGenerate, next_number_.fetch_add(1), pack(requests));
  std::vector<RequestOutput> outputs;
  const Status status = reply.ok() ? unpack(reply.value(), outputs) : reply.status();
  if (status.ok()) return outputs;
  GenerateCall failed(requests);
  for (size_t i = 0; i < requests.size(); ++i) failed.fail(i, status);
  return failed.take();
}

std::future<std::vector<RequestOutput>> RemoteEngine::generate_async(Request request) {
  return future_outputs(*this, std::move(request));
}

Status RemoteEngine::load_adapter(const LoraModule& adapter, bool replace) {
  FT_RETURN_IF_ERROR(status_of_call(FrontKind::kLoadAdapter, pack(adapter, replace)));
  const std::lock_guard lock(mutex_);
  std::erase_if(adapters_, [&](const AdapterInfo& each) { return each.name == adapter.name; });
  adapters_.push_back({adapter.name, adapter.path, adapter.base_model_name});
  return {};
}

Status RemoteEngine::unload_adapter(const std::string& name) {
  FT_RETURN_IF_ERROR(status_of_call(FrontKind::kUnloadAdapter, pack(name)));
  const std::lock_guard lock(mutex_);
  std::erase_if(adapters_, [&](const AdapterInfo& each) { return each.name == name; });
  return {};
}

std::vector<AdapterInfo> RemoteEngine::adapters() const {
  const std::lock_guard lock(mutex_);
  return adapters_;
}

Status RemoteEngine::sleep(int level, bool ends_requests, int64_t* bytes,
                           const std::stop_token& recall) {
  FT_ASSIGN_OR_RETURN(const std::string reply, call(FrontKind::kSleep, next_number_.fetch_add(1),
                                                    pack(level, ends_requests), recall));
  Status status;
  int64_t freed = 0;
  FT_RETURN_IF_ERROR(unpack(reply, status, freed));
  if (bytes != nullptr) *bytes = freed;
  return status;
}

Status RemoteEngine::wake_up(const std::vector<std::string>& tags) {
  return status_of_call(FrontKind::kWakeUp, pack(tags));
}

EngineStats RemoteEngine::stats() const {
  const Result<std::string> reply =
      call(FrontKind::kStats, next_number_.fetch_add(1), std::string());
  EngineStats heard;
  const bool is_new = reply.ok() && unpack(reply.value(), heard).ok();
  const std::lock_guard lock(mutex_);
  if (is_new) stats_ = std::move(heard);
  return stats_;
}

Status RemoteEngine::status_of_call(FrontKind kind, std::string body) {
  FT_ASSIGN_OR_RETURN(const std::string reply,
                      call(kind, next_number_.fetch_add(1), std::move(body)));
  Status status;
  FT_RETURN_IF_ERROR(unpack(reply, status));
  return status;
}

Result<std::string> RemoteEngine::call(FrontKind kind, uint64_t number, std::string body,
                                       const std::stop_token& recall) const {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) return closed_;
    calls_.emplace(number, Call());
  }
  const Status sent = send(kind, number, std::move(body));
  const std::stop_callback recalled(recall,
                                    [&] { (void)send(FrontKind::kRecallSleep, number, {}); });
  std::unique_lock lock(mutex_);
  if (sent.ok()) {
    changed_.wait(lock, [&] { return calls_.at(number).answered || !closed_.ok(); });
  }
  const Call made = std::move(calls_.at(number));
  calls_.erase(number);
  if (made.answered) return made.reply;
  return closed_.ok() ? sent : closed_;
}

Status RemoteEngine::send(FrontKind kind, uint64_t number, std::string body) const {
  const std::lock_guard lock(send_mutex_);
  return send_message(*requests_, {kind, number, 0, std::move(body)},
                      "a request for engine " + std::to_string(index_));
}

std::string RemoteEngine::activity() const {
  return "outputs behind step " + std::to_string(step_.load()) + " of engine " +
         std::to_string(index_);
}

void RemoteEngine::receive() {
  set_thread_role(ThreadRole::kOther, "ft-remote");
  for (;;) {
    Result<FrontMessage> message = receive_message(*outputs_, activity());
    if (!message.ok()) return close(message.status());
    if (message.value().kind == FrontKind::kEnded) {
      return close(aborted("engine " + std::to_string(index_) + " has ended"));
    }
    step_.store(message.value().step);
    take(std::move(message).value());
  }
}

void RemoteEngine::take(FrontMessage message) {
  if (message.kind == FrontKind::kOutput) {
    RequestOutput output;
    const Status read = unpack(message.body, output);
    if (!read.ok()) output.status = read;
    const std::lock_guard lock(mutex_);
    to_deliver_.emplace_back(message.number, std::move(output));
  } else {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(message.number);
    if (found != calls_.end()) found->second = {true, std::move(message.body)};
  }
  changed_.notify_all();
}

void RemoteEngine::close(const Status& why) {
  const std::lock_guard lock(mutex_);
  closed_ = why;
  for (const auto& [number, live] : live_) fail(number, *live, why);
  changed_.notify_all();
}

void RemoteEngine::deliver() {
  set_thread_role(ThreadRole::kOther, "ft-deliver");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !to_deliver_.empty() || !closed_.ok(); });
    if (to_deliver_.empty()) return;
    const auto [number, output] = std::move(to_deliver_.front());
    to_deliver_.pop_front();
    lock.unlock();
    give(number, output);
    lock.lock();
  }
}

// Of a choice that has ended nothing more is told, and the last one that ends is the request's.
void RemoteEngine::give(uint64_t number, const RequestOutput& output) {
  std::shared_ptr<Live> live;
  std::string id;
  RequestOutput told = output;
  {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(number);
    if (found == live_.end()) return;
    live = found->second;
    id = live->id;
    std::vector<bool>& finished = live->finished;
    const auto choice = static_cast<size_t>(output.index);
    if (choice >= finished.size() || finished[choice]) return;
    finished[choice] = output.finished;
    told.request_finished = std::all_of(finished.begin(), finished.end(), [](bool b) { return b; });
    if (told.request_finished) live_.erase(found);
  }
  try {
    return live->callback(told);
  } catch (const std::exception& error) {
    FT_LOG(error, "request {}: its output callback threw ({}); the request ends", id, error.what());
  } catch (...) {
    FT_LOG(error, "request {}: its output callback threw; the request ends", id);
  }
  abort(id);
  const std::lock_guard lock(mutex_);
  fail(number, *live,
       invalid_argument("request " + id + ": its output callback threw an exception; it may not"));
}

// Under the mutex. Choices that have ended already are passed over when it is told.
void RemoteEngine::fail(uint64_t number, const Live& live, const Status& why) {
  for (size_t choice = 0; choice < live.finished.size(); ++choice) {
    to_deliver_.emplace_back(number, failed_output(live.id, choice, why));
  }
  changed_.notify_all();
}

}  // namespace foretoken
