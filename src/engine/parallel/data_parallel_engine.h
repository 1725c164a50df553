#pragma once
#include <foretoken/engine.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/engine_texts.h"
#include "engine/parallel/prefix_router.h"
#include "engine/parallel/sleep_together.h"

namespace foretoken {

// Several engines with the same model as one: each request runs on the engine that the router
// chooses, and its text is the same on any of them. They share nothing but the router, unless they
// have the experts of a mixture together (ParallelConfig::enable_expert_parallel): then they run
// steps together (group/shape_agreement.h), and fail and end together. An engine that has failed
// gets no further requests; the health of the whole is that of its worst engine.
class DataParallelEngine final : public EngineOverTexts<Engine> {
 public:
  // At least one engine, all with the same configuration; `seed` is EngineConfig::seed. The first
  // num_here of them are of this process (-1: all): they alone run logits processors. `texts`,
  // which may be null, is what they ask about texts.
  DataParallelEngine(std::vector<std::unique_ptr<Engine>> engines, uint64_t seed, int num_here = -1,
                     std::unique_ptr<Engine> texts = nullptr);
  ~DataParallelEngine() override;

  // Makes the engines of this process, all at once, and meets those of other processes
  // (start_engines). The devices and the
  // processors of this host are divided among its own, and each measures its steps beside the
  // others'.
  static Result<std::unique_ptr<Engine>> create(const EngineConfig& config);

  Status submit(Request request, OutputCallback callback, std::string* request_id) override;
  void abort(const std::string& request_id) override;
  std::vector<RequestOutput> generate(std::vector<Request> requests) override;
  std::future<std::vector<RequestOutput>> generate_async(Request request) override;
  SamplingParams default_sampling_params() const override;
  Status load_adapter(const LoraModule& adapter, bool replace) override;
  Status unload_adapter(const std::string& name) override;
  std::vector<AdapterInfo> adapters() const override;
  // All engines at once, and where one of them cannot, the others do as they did before.
  Status sleep(int level, bool ends_requests, int64_t* bytes,
               const std::stop_token& recall) override;
  Status wake_up(const std::vector<std::string>& tags) override;
  EngineStats stats() const override;
  const EngineInfo& info() const override { return info_; }

 private:
  // A request that runs, kept by its callback.
  struct Live {
    std::string id;
    PrefixRouter::Route route;
    int num_sequences = 1;
    bool prompt_done = false;
    bool ended = false;
  };

  const Engine& texts() const override { return *engines_.front(); }
  // Gives the request what does not depend on the engine: ids of its prompt, its id and its seed.
  void prepare(Request& request);
  PrefixRouter::Route route(const Request& request, int num_sequences);
  Status submit_to(const std::shared_ptr<Live>& live, Request request, OutputCallback callback);
  // What one engine has of a call to generate.
  struct Share {
    struct Part {
      size_t request = 0;
      PrefixRouter::Route route;
      int num_choices = 1;
    };
    std::vector<Part> parts;
    std::vector<Request> requests;
    std::vector<RequestOutput> outputs;
  };

  std::vector<RequestOutput> in_order(std::vector<Share>& shares, size_t num_requests);
  void note(Live& live, const RequestOutput& output);
  void end(Live& live);
  Status health();
  // Where the request's blocks may be found again.
  static std::string router_salt(const Request& request) {
    return request.adapter.empty() ? request.cache_salt
                                   : request.cache_salt + '\n' + request.adapter;
  }

  // So many first engines may run the request.
  int num_candidates(const Request& request) const;
  // Why a request can run on none of the engines; ok: on some.
  Status check_engines(const Request& request) const;

  const std::unique_ptr<Engine> texts_;  // outlives the engines
  std::vector<std::unique_ptr<Engine>> engines_;
  SleepTogether sleeps_{engines_};
  const uint64_t seed_;
  const int num_here_;
  EngineInfo info_;
  PrefixRouter router_;
  std::atomic<uint64_t> next_number_{0};
  std::mutex callback_mutex_;  // one output at a time, as of one engine
  std::mutex adapters_mutex_;  // all engines have the same ones
  std::mutex live_mutex_;
  std::unordered_map<std::string, int> engine_of_;  // by id of a request that runs
};

// The configuration of the engines of one of several hosts, which has `num_engines` from
// `first_engine` on.
EngineConfig config_of_host(const EngineConfig& config, int num_engines, int first_engine = 0);
// The configuration of the `index`th of several engines.
EngineConfig config_of_engine(const EngineConfig& config, int index);

// Sums over engines; what is the same on all is that of the first.
EngineInfo sum_of(const std::vector<const EngineInfo*>& infos);
EngineStats sum_of(std::vector<EngineStats> engines);

}  // namespace foretoken
