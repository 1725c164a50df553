#include "engine/parallel/process_ranks.h"

#include <algorithm>
#include <csignal>
#include <string>
#include <utility>

#include "base/log.h"
#include "engine/engine_texts.h"
#include "engine/parallel/data_parallel_engine.h"
#include "engine/parallel/start_engines.h"
#include "engine/rank_engine.h"
#include "engine/start/agreed_config.h"
#include "engine/start/host_flags.h"
#include "engine/start/parallel_checks.h"

namespace foretoken {
namespace {

// The engine of rank 0 with the processes that belong to it.
class ProcessRanksEngine final : public EngineOverTexts<Engine> {
 public:
  ProcessRanksEngine(std::shared_ptr<group::ProcessGroup> processes, group::RankGroup& group,
                     std::unique_ptr<Engine> engine)
      : processes_(std::move(processes)), group_(group), engine_(std::move(engine)) {}

  Status submit(Request request, OutputCallback callback, std::string* request_id) override {
    FT_RETURN_IF_ERROR(group_.ended());
    const Status status = engine_->submit(std::move(request), std::move(callback), request_id);
    // An engine of one rank has no links that would tell the others.
    if (status.code() == StatusCode::kInternal) group_.end(status);
    return status;
  }
  void abort(const std::string& request_id) override { engine_->abort(request_id); }
  std::vector<RequestOutput> generate(std::vector<Request> requests) override {
    return engine_->generate(std::move(requests));
  }
  std::future<std::vector<RequestOutput>> generate_async(Request request) override {
    return engine_->generate_async(std::move(request));
  }
  SamplingParams default_sampling_params() const override {
    return engine_->default_sampling_params();
  }
  Status load_adapter(const LoraModule& adapter, bool replace) override {
    return engine_->load_adapter(adapter, replace);
  }
  Status unload_adapter(const std::string& name) override { return engine_->unload_adapter(name); }
  std::vector<AdapterInfo> adapters() const override { return engine_->adapters(); }
  Status sleep(int level, bool ends_requests, int64_t* bytes,
               const std::stop_token& recall) override {
    return engine_->sleep(level, ends_requests, bytes, recall);
  }
  Status wake_up(const std::vector<std::string>& tags) override { return engine_->wake_up(tags); }
  EngineStats stats() const override { return engine_->stats(); }
  const EngineInfo& info() const override { return engine_->info(); }

 private:
  const Engine& texts() const override { return *engine_; }

  // The engine goes first: it sends the last plan, and the others leave.
  const std::shared_ptr<group::ProcessGroup> processes_;
  group::RankGroup& group_;  // this engine's place in it
  std::unique_ptr<Engine> engine_;
};

// A server of one engine may stand beside the others' on one host.
group::HostFlags host_flags(const ParallelConfig& parallel) {
  group::HostFlags flags{.nnodes = parallel.nnodes,
                         .node_rank = parallel.node_rank,
                         .master_addr = parallel.master_addr,
                         .master_port = parallel.master_port};
  if (!names_own_engines(parallel)) return flags;
  flags.engines = group::HostEngines{.first = parallel.data_parallel_start_rank,
                                     .count = parallel.data_parallel_size_local,
                                     .behind = parallel.headless};
  if (parallel.data_parallel_external_lb && flags.master_addr.empty()) {
    flags.master_addr = "127.0.0.1";
  }
  return flags;
}

// On its own device; a child is told the first one of its engine.
EngineConfig config_of_rank(const EngineConfig& config, const group::LaunchPlan& plan) {
  EngineConfig own = config;
  own.device_ordinal = plan.first_device.value_or(config.device_ordinal) + plan.local_rank;
  return own;
}

Result<std::unique_ptr<group::ProcessGroup>> meet(const EngineConfig& config,
                                                  const group::Environment& environment) {
  const ParallelConfig& parallel = config.parallel;
  group::AgreedParts parts = agreed_parts(config);
  const bool has_one_front = has_one_front_end(parallel, environment);
  parts.push_back({"a server (--headless, --data-parallel-hybrid-lb, --data-parallel-external-lb)",
                   has_one_front ? "for all engines" : "of its own"});
  return group::ProcessGroup::start({.layout = layout_of_group(parallel, environment),
                                     .hosts = host_flags(parallel),
                                     .first_device = config.device_ordinal,
                                     .parts = std::move(parts),
                                     .engines_meet = parallel.enable_expert_parallel,
                                     .has_one_front = has_one_front,
                                     .communicator = parallel.communicator,
                                     .environment = heeded_environment(parallel, environment),
                                     .cancelled = config.cancel_load});
}

RankLinks take_links(group::RankGroup& group) {
  RankLinks links;
  for (size_t lane = 0; lane < links.own.size(); ++lane) {
    const auto which = static_cast<group::Lane>(lane);
    if (group.layout().ranks_per_engine() > 1) links.own[lane] = group.take_link(which);
    if (group.engines_meet()) links.beside[lane] = group.take_link_beside(which);
  }
  return links;
}

// Of a rank that is a process of its own.
EngineConfig config_of_process(const EngineConfig& config, const group::LaunchPlan& plan,
                               const group::Environment& environment) {
  const group::RankLayout layout = layout_of_group(config.parallel, environment);
  if (layout.dp == 1) return config_of_rank(config, plan);
  const ParallelConfig& parallel = config.parallel;
  if (group::has_launcher(heeded_environment(parallel, environment))) {
    return config_of_own_engine(config, plan, 0, environment);
  }
  const int number = place_of(layout, plan.rank).dp;
  const bool named = names_own_engines(parallel);
  const int engines =
      named ? parallel.data_parallel_size_local : layout.dp / num_hosts(parallel, environment);
  const int first = named ? parallel.data_parallel_start_rank : number / engines * engines;
  return config_of_rank(config_of_engine(config_of_host(config, engines, first), number - first),
                        plan);
}

// Engines of which a launcher has put ranks on this host; all where it does not tell.
int launched_engines_here(const ParallelConfig& parallel, const group::LaunchPlan& plan) {
  if (plan.num_local == 0) return parallel.data_parallel_size;
  const int each = layout_of_engine(parallel).num_ranks();
  return std::max((plan.num_local + each - 1) / each, 1);
}

}  // namespace

EngineConfig config_of_own_engine(const EngineConfig& config, const group::LaunchPlan& plan,
                                  int index, const group::Environment& environment) {
  const ParallelConfig& parallel = config.parallel;
  const int engine = plan.rank / layout_of_engine(parallel).num_ranks();
  const bool is_launched = group::has_launcher(heeded_environment(parallel, environment));
  if (!is_launched || num_hosts(parallel, environment) > 1) {
    return config_of_engine(config_of_host(config, plan.num_engines, engine), index);
  }
  const int engines = launched_engines_here(parallel, plan);
  EngineConfig own =
      config_of_rank(config_of_engine(config_of_host(config, engines, engine), 0), plan);
  if (!own.profile.empty() && engine > 0) own.profile += "." + std::to_string(engine);
  return own;
}

Result<std::unique_ptr<Engine>> make_process_engine(const EngineConfig& config,
                                                    const group::Environment& environment,
                                                    StartBarrier* barrier) {
  FT_ASSIGN_OR_RETURN(const auto rank, rank_without_requests(config.parallel, environment));
  if (rank) return no_front_end(*rank);
  FT_ASSIGN_OR_RETURN(std::shared_ptr<group::ProcessGroup> processes, meet(config, environment));
  FT_LOG(info, "{} ranks have met", processes->group().layout().num_ranks());
  const EngineConfig own = config_of_rank(config, processes->plan());
  return make_engine_of_group(std::move(processes), 0, own, barrier);
}

Result<std::shared_ptr<group::ProcessGroup>> meet_engines(const EngineConfig& config,
                                                          const group::Environment& environment) {
  FT_ASSIGN_OR_RETURN(std::shared_ptr<group::ProcessGroup> processes, meet(config, environment));
  FT_LOG(info, "{} ranks have met, {} engines of {} are here",
         processes->group().layout().num_ranks(), processes->plan().num_engines,
         processes->group().layout().dp);
  return processes;
}

Result<std::unique_ptr<Engine>> make_engine_of_group(std::shared_ptr<group::ProcessGroup> processes,
                                                     int index, const EngineConfig& config,
                                                     StartBarrier* barrier) {
  group::RankGroup& group = processes->group(index);
  std::unique_ptr<Engine> engine;
  const Status made = make_rank_engine(config, take_links(group), barrier, &engine);
  // Why the group has ended says more than the call that noticed it.
  if (!made.ok()) return group.ended().ok() ? made : group.ended();
  return std::unique_ptr<Engine>(
      std::make_unique<ProcessRanksEngine>(std::move(processes), group, std::move(engine)));
}

Status run_process_rank(const EngineConfig& config, const group::Environment& environment) {
  FT_ASSIGN_OR_RETURN(const std::shared_ptr<group::ProcessGroup> processes,
                      meet(config, environment));
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  const int each = processes->group().layout().ranks_per_engine();
  const bool has_engine =
      has_one_front_end(config.parallel, environment) && processes->plan().rank % each == 0;
  const Status ran = has_engine
                         ? run_engines_behind(processes, config, environment)
                         : run_rank(config_of_process(config, processes->plan(), environment),
                                    TestHooks{}, take_links(processes->group()));
  const Status ended = processes->group().ended();
  // Rank 0 left before or after it sent the last plan.
  if (ended.code() == StatusCode::kAborted) return {};
  return ended.ok() ? ran : ended;
}

Status no_front_end(int rank) {
  return unsupported("this process is rank " + std::to_string(rank) +
                     " of its launcher, but only the foretoken command runs ranks above 0; start "
                     "one process, or use the command");
}

Result<std::optional<int>> rank_without_requests(const ParallelConfig& parallel,
                                                 const group::Environment& environment) {
  if (!ranks_are_processes(parallel, environment) &&
      !meets_other_processes(parallel, environment)) {
    return std::optional<int>();
  }
  const group::RankLayout layout = layout_of_group(parallel, environment);
  FT_ASSIGN_OR_RETURN(
      const group::LaunchPlan plan,
      group::plan_launch(layout, host_flags(parallel), heeded_environment(parallel, environment)));
  const bool has_own_server = layout.dp > 1 && plan.rank % layout.ranks_per_engine() == 0 &&
                              !has_one_front_end(parallel, environment);
  return has_own_server || plan.gathers() ? std::optional<int>() : std::optional<int>(plan.rank);
}

}  // namespace foretoken
