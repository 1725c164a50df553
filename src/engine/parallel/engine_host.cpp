#include "engine/parallel/engine_host.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <list>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "engine/parallel/front_message.h"
#include "engine/parallel/wire_archive.h"
#include "engine/parallel/wire_fields.h"

namespace foretoken {
namespace {

template <class... Values>
std::string packed(const Values&... values) {
  wire::Writer writer;
  writer(values...);
  return writer.take();
}

class EngineHost {
 public:
  EngineHost(std::unique_ptr<Engine> engine, group::RankLink& requests, group::RankLink& outputs,
             int index)
      : engine_(std::move(engine)), requests_(requests), outputs_(outputs), index_(index) {}

  Status run() {
    Status status = send(FrontKind::kInfo, 0, packed(engine_->info(), engine_->adapters()));
    if (status.ok()) status = take_requests();
    if (!status.ok()) end_calls();
    calls_.clear();
    {
      const std::lock_guard lock(steps_mutex_);
      ends_ = true;
    }
    engine_.reset();
    tell(FrontKind::kEnded, 0, {});
    return status;
  }

 private:
  // A call that may take long, on a thread of its own.
  struct Call {
    std::vector<std::string> ids;
    uint64_t number = 0;      // of one to sleep
    std::stop_source recall;  // of that
    std::future<void> done;
  };

  Status take_requests() {
    const std::string what = "requests for engine " + std::to_string(index_);
    for (;;) {
      FT_ASSIGN_OR_RETURN(const FrontMessage message, receive_message(requests_, what));
      if (message.kind == FrontKind::kEnd) return {};
      FT_RETURN_IF_ERROR(take(message));
    }
  }

  Status take(const FrontMessage& message) {
    wire::Reader reader(message.body);
    switch (message.kind) {
      case FrontKind::kSubmit:
        return submit(message.number, reader);
      case FrontKind::kGenerate:
        return generate(message.number, reader);
      case FrontKind::kAbort: {
        std::string id;
        reader(id);
        FT_RETURN_IF_ERROR(reader.status());
        engine_->abort(id);
        return {};
      }
      case FrontKind::kStats:
        return send(FrontKind::kReply, message.number, packed(engine_->stats()));
      case FrontKind::kLoadAdapter: {
        LoraModule adapter;
        bool replace = false;
        reader(adapter, replace);
        FT_RETURN_IF_ERROR(reader.status());
        const Status loaded = engine_->load_adapter(adapter, replace);
        return send(FrontKind::kReply, message.number, packed(loaded));
      }
      case FrontKind::kUnloadAdapter: {
        std::string name;
        reader(name);
        FT_RETURN_IF_ERROR(reader.status());
        return send(FrontKind::kReply, message.number, packed(engine_->unload_adapter(name)));
      }
      case FrontKind::kSleep:
        return sleep(message.number, reader);
      case FrontKind::kRecallSleep:
        recall(message.number);
        return {};
      case FrontKind::kWakeUp:
        return wake_up(message.number, reader);
      default:
        return internal_error("a front end sent a message that is none of its own");
    }
  }

  Status submit(uint64_t number, wire::Reader& reader) {
    Request request;
    reader(request);
    FT_RETURN_IF_ERROR(reader.status());
    std::string id;
    const Status status = engine_->submit(
        std::move(request),
        [this, number](const RequestOutput& output) {
          tell(FrontKind::kOutput, number, packed(output));
        },
        &id);
    return send(FrontKind::kReply, number, packed(status, id));
  }

  Status generate(uint64_t number, wire::Reader& reader) {
    std::vector<Request> requests;
    reader(requests);
    FT_RETURN_IF_ERROR(reader.status());
    Call& call = add_call();
    for (const Request& request : requests) call.ids.push_back(request.request_id);
    call.done = std::async(std::launch::async, [this, number, own = std::move(requests)]() mutable {
      const std::vector<RequestOutput> outputs = engine_->generate(std::move(own));
      tell(FrontKind::kReply, number, packed(outputs));
    });
    return {};
  }

  Status sleep(uint64_t number, wire::Reader& reader) {
    int level = 0;
    bool ends_requests = false;
    reader(level, ends_requests);
    FT_RETURN_IF_ERROR(reader.status());
    Call& call = add_call();
    call.number = number;
    const std::stop_token recall = call.recall.get_token();
    call.done = std::async(std::launch::async, [this, number, level, ends_requests, recall] {
      int64_t bytes = 0;
      const Status status = engine_->sleep(level, ends_requests, &bytes, recall);
      tell(FrontKind::kReply, number, packed(status, bytes));
    });
    return {};
  }

  // One that has ended meanwhile is not there any more.
  void recall(uint64_t number) {
    for (Call& call : calls_) {
      if (call.number == number) call.recall.request_stop();
    }
  }

  Status wake_up(uint64_t number, wire::Reader& reader) {
    std::vector<std::string> tags;
    reader(tags);
    FT_RETURN_IF_ERROR(reader.status());
    add_call().done = std::async(std::launch::async, [this, number, own = std::move(tags)] {
      tell(FrontKind::kReply, number, packed(engine_->wake_up(own)));
    });
    return {};
  }

  Call& add_call() {
    calls_.remove_if([](const Call& call) {
      return call.done.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
    return calls_.emplace_back();
  }

  // Nobody waits for what they would give.
  void end_calls() {
    for (Call& call : calls_) {
      for (const std::string& id : call.ids) engine_->abort(id);
      call.recall.request_stop();
    }
  }

  // An error is that of the group, which the thread that takes requests hears of, too.
  void tell(FrontKind kind, uint64_t number, std::string body) {
    const Status sent = send(kind, number, std::move(body));
    if (!sent.ok()) FT_LOG(debug, "a front end was not told: {}", sent.message());
  }

  // Any thread.
  Status send(FrontKind kind, uint64_t number, std::string body) {
    const uint64_t step = steps();
    const std::lock_guard lock(send_mutex_);
    return send_message(
        outputs_, {kind, number, step, std::move(body)},
        "outputs behind step " + std::to_string(step) + " of engine " + std::to_string(index_));
  }

  // How many steps the engine has made, about.
  uint64_t steps() {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kBetween(100);
    const std::lock_guard lock(steps_mutex_);
    const Clock::time_point now = Clock::now();
    if (!ends_ && now - counted_ >= kBetween) {
      steps_ = static_cast<uint64_t>(engine_->stats().num_steps);
      counted_ = now;
    }
    return steps_;
  }

  std::unique_ptr<Engine> engine_;
  group::RankLink& requests_;
  group::RankLink& outputs_;
  const int index_;
  std::list<Call> calls_;
  std::mutex send_mutex_;
  std::mutex steps_mutex_;
  std::chrono::steady_clock::time_point counted_;
  uint64_t steps_ = 0;
  bool ends_ = false;  // the engine is not to be asked any more
};

}  // namespace

Status serve_front(std::unique_ptr<Engine> engine, group::RankLink& requests,
                   group::RankLink& outputs, int index) {
  return EngineHost(std::move(engine), requests, outputs, index).run();
}

}  // namespace foretoken
