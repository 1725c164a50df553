#pragma once
#include <foretoken/engine.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/engine_texts.h"
#include "engine/parallel/front_message.h"
#include "group/process_group.h"

namespace foretoken {

// An engine of another process (engine_host.h), at the front end that gives it requests. Texts and
// templates are those of an engine here, or of a TextEngine, which has the same model. When the
// group has ended every request fails with its reason. Requests must have no logits processors,
// which are code.
class RemoteEngine final : public EngineOverTexts<Engine> {
 public:
  // Waits until the `index`th engine of the group is ready. `texts` outlives it.
  static Result<std::unique_ptr<Engine>> meet(std::shared_ptr<group::ProcessGroup> processes,
                                              int index, const Engine& texts);
  // Waits until the engine has ended.
  ~RemoteEngine() override;

  Status submit(Request request, OutputCallback callback, std::string* request_id) override;
  void abort(const std::string& request_id) override;
  std::vector<RequestOutput> generate(std::vector<Request> requests) override;
  std::future<std::vector<RequestOutput>> generate_async(Request request) override;
  SamplingParams default_sampling_params() const override {
    return texts_.default_sampling_params();
  }
  Status load_adapter(const LoraModule& adapter, bool replace) override;
  Status unload_adapter(const std::string& name) override;
  std::vector<AdapterInfo> adapters() const override;
  Status sleep(int level, bool ends_requests, int64_t* bytes,
               const std::stop_token& recall) override;
  Status wake_up(const std::vector<std::string>& tags) override;
  EngineStats stats() const override;
  const EngineInfo& info() const override { return info_; }

 private:
  // A request whose outputs are awaited.
  struct Live {
    OutputCallback callback;
    std::string id;
    std::vector<bool> finished;  // by choice
  };
  // A call whose reply is awaited.
  struct Call {
    bool answered = false;
    std::string reply;
  };

  const Engine& texts() const override { return texts_; }
  RemoteEngine(std::shared_ptr<group::ProcessGroup> processes, int index, const Engine& texts);
  Status wait_until_ready();
  // The reply. recall: of kSleep, which goes behind it.
  Result<std::string> call(FrontKind kind, uint64_t number, std::string body,
                           const std::stop_token& recall = {}) const;
  Status status_of_call(FrontKind kind, std::string body);
  Status send(FrontKind kind, uint64_t number, std::string body) const;
  std::string activity() const;
  // The thread that receives, which never waits for callbacks.
  void receive();
  void take(FrontMessage message);
  // No more comes: what waits fails with `why`.
  void close(const Status& why);
  void fail(uint64_t number, const Live& live, const Status& why);
  // The thread that calls back.
  void deliver();
  void give(uint64_t number, const RequestOutput& output);

  const std::shared_ptr<group::ProcessGroup> processes_;
  const int index_;
  const Engine& texts_;
  const std::unique_ptr<group::RankLink> requests_;
  const std::unique_ptr<group::RankLink> outputs_;
  EngineInfo info_;
  mutable std::mutex send_mutex_;
  mutable std::mutex mutex_;  // what follows
  mutable std::condition_variable changed_;
  mutable std::unordered_map<uint64_t, Call> calls_;
  std::unordered_map<uint64_t, std::shared_ptr<Live>> live_;
  std::deque<std::pair<uint64_t, RequestOutput>> to_deliver_;
  std::vector<AdapterInfo> adapters_;
  Status closed_;              // why nothing comes any more
  mutable EngineStats stats_;  // as last heard of
  mutable std::atomic<uint64_t> next_number_{1};
  std::atomic<uint64_t> step_{0};
  std::thread receiver_;
  std::thread deliverer_;
};

}  // namespace foretoken
