#include "engine/parallel/start_engines.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <latch>
#include <string>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/thread_limit.h"
#include "engine/parallel/data_parallel_engine.h"
#include "engine/parallel/engine_host.h"
#include "engine/parallel/make_engine.h"
#include "engine/parallel/process_ranks.h"
#include "engine/parallel/remote_engine.h"
#include "engine/parallel/text_engine.h"
#include "engine/start/host_flags.h"
#include "engine/start/locate_model.h"
#include "engine/start/parallel_checks.h"
#include "engine/start/speculative_checks.h"

namespace foretoken {
namespace {

using Engines = std::vector<std::unique_ptr<Engine>>;
using Processes = std::shared_ptr<group::ProcessGroup>;
using MakeEngine =
    std::function<Status(int index, StartBarrier* barrier, std::unique_ptr<Engine>* engine)>;

// So that engines do not fetch the same files at once. A front end without engines reads its own.
Status fetch_files(const EngineConfig& config) {
  FT_RETURN_IF_ERROR(check_speculative(config));
  if (config.parallel.data_parallel_size_local == 0) return {};
  FT_ASSIGN_OR_RETURN(const EngineConfig located, locate_model(config));
  return locate_drafters(located).status();
}

// Links between the engines whose layers meet in the experts; none where they are apart.
std::vector<std::vector<RankLinks>> links_of_engines(const ParallelConfig& parallel) {
  const auto engines = static_cast<size_t>(parallel.data_parallel_size);
  if (!parallel.enable_expert_parallel) return std::vector<std::vector<RankLinks>>(engines);
  return local_links_of_engines(parallel.data_parallel_size,
                                layout_of_engine(parallel).num_ranks());
}

// Of several errors the first engine's.
Result<Engines> make_together(int size, const MakeEngine& make) {
  std::latch barriers(size);
  Engines engines(static_cast<size_t>(size));
  std::vector<std::future<Status>> starts;
  Status status;
  for (int i = 0; i < size && status.ok(); ++i) {
    status = start_threads([&, i]() -> Status {
      starts.push_back(std::async(std::launch::async, [&, i] {
        StartBarrier barrier(barriers, i == 0);
        return make(i, &barrier, &engines[static_cast<size_t>(i)]);
      }));
      return {};
    });
    // Nobody is left who would give up the barriers of the others.
    if (!status.ok()) barriers.count_down(size - i);
  }
  for (std::future<Status>& start : starts) {
    const Status one = start.get();
    if (status.ok()) status = one;
  }
  if (status.ok()) return engines;
  end_together(engines);
  return status;
}

// Ends the group once `cancelled` is set, which may be null.
std::jthread watch_cancel(const Processes& processes, const std::atomic<bool>* cancelled) {
  if (cancelled == nullptr) return {};
  return std::jthread([&group = processes->group(), cancelled](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (cancelled->load()) return group.end(aborted("loading was interrupted"));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
}

// Those of other processes, behind `engines`, of which the first knows the texts, if there is one.
Status meet_others(const Processes& processes, const std::atomic<bool>* cancelled,
                   StartedEngines& started) {
  const std::jthread watcher = watch_cancel(processes, cancelled);
  const int num_engines = processes->group().layout().dp;
  const Engine& texts = started.texts != nullptr ? *started.texts : *started.engines.front();
  for (int i = started.num_here; i < num_engines; ++i) {
    FT_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, RemoteEngine::meet(processes, i, texts));
    started.engines.push_back(std::move(engine));
  }
  return {};
}

// The engines of this process, or what stands in for their texts.
Result<StartedEngines> start_at_front(const Processes& processes, const EngineConfig& config,
                                      const group::Environment& environment) {
  StartedEngines started;
  if (processes->plan().num_engines == 0) {
    FT_ASSIGN_OR_RETURN(started.texts, TextEngine::load(config));
    return started;
  }
  FT_ASSIGN_OR_RETURN(started.engines, start_own_engines(processes, config, environment));
  started.num_here = static_cast<int>(started.engines.size());
  return started;
}

void log_servers(const ParallelConfig& parallel, int num_engines) {
  if (!parallel.data_parallel_hybrid_lb && !parallel.data_parallel_external_lb) return;
  const int first = std::max(parallel.data_parallel_start_rank, 0);
  FT_LOG(info, "this server has engines {} to {}; others are behind servers of their own", first,
         first + num_engines - 1);
}

Result<StartedEngines> start_front(const EngineConfig& config,
                                   const group::Environment& environment) {
  FT_ASSIGN_OR_RETURN(const Processes processes, meet_engines(config, environment));
  Result<StartedEngines> started = start_at_front(processes, config, environment);
  if (!started.ok()) {
    // An engine of one rank has no links that would tell the others.
    processes->group().end(started.status());
    return started;
  }
  if (!has_one_front_end(config.parallel, environment)) return started;
  const Status met = meet_others(processes, config.cancel_load, started.value());
  if (met.ok()) return started;
  end_together(started.value().engines);
  return met;
}

}  // namespace

void end_together(Engines& engines) {
  std::vector<std::jthread> threads;
  for (std::unique_ptr<Engine>& engine : engines) {
    if (engine != nullptr) threads.emplace_back([&engine] { engine.reset(); });
  }
  for (std::jthread& thread : threads) thread.join();
}

Result<StartedEngines> start_engines(const EngineConfig& config,
                                     const group::Environment& environment) {
  make_logger();
  FT_ASSIGN_OR_RETURN(const auto rank, rank_without_requests(config.parallel, environment));
  if (rank) return no_front_end(*rank);
  FT_RETURN_IF_ERROR(fetch_files(config));
  if (meets_other_processes(config.parallel, environment)) return start_front(config, environment);
  std::vector<std::vector<RankLinks>> links = links_of_engines(config.parallel);
  StartedEngines started;
  started.num_here = config.parallel.data_parallel_size;
  log_servers(config.parallel, started.num_here);
  FT_ASSIGN_OR_RETURN(started.engines,
                      make_together(started.num_here, [&](int i, StartBarrier* barrier,
                                                          std::unique_ptr<Engine>* engine) {
                        return make_one_engine(config_of_engine(config, i), barrier, engine,
                                               std::move(links[static_cast<size_t>(i)]));
                      }));
  return started;
}

Result<Engines> start_own_engines(const Processes& processes, const EngineConfig& config,
                                  const group::Environment& environment) {
  return make_together(
      processes->plan().num_engines,
      [&](int i, StartBarrier* barrier, std::unique_ptr<Engine>* engine) -> Status {
        const EngineConfig own = config_of_own_engine(config, processes->plan(), i, environment);
        FT_ASSIGN_OR_RETURN(*engine, make_engine_of_group(processes, i, own, barrier));
        return {};
      });
}

Status run_engines_behind(Processes processes, const EngineConfig& config,
                          const group::Environment& environment) {
  Result<Engines> made = start_own_engines(processes, config, environment);
  if (!made.ok()) {
    // An engine of one rank has no links that would tell the others.
    processes->group().end(made.status());
    return processes->group().ended();
  }
  const int first = processes->plan().rank / processes->group().layout().ranks_per_engine();
  FT_LOG(info, "engines {} to {} take requests from the front end at {}:{}", first,
         first + static_cast<int>(made.value().size()) - 1, processes->plan().master_host,
         processes->plan().master_port);
  std::vector<std::future<Status>> runs;
  for (size_t i = 0; i < made.value().size(); ++i) {
    const int index = first + static_cast<int>(i);
    group::RankGroup& group = processes->group(static_cast<int>(i));
    runs.push_back(
        std::async(std::launch::async,
                   [index, engine = std::move(made.value()[i]),
                    requests = group.take_front_link(index, group::FrontLane::kRequests),
                    outputs = group.take_front_link(index, group::FrontLane::kOutputs)]() mutable {
                     return serve_front(std::move(engine), *requests, *outputs, index);
                   }));
  }
  Status status;
  for (std::future<Status>& run : runs) {
    const Status one = run.get();
    if (status.ok()) status = one;
  }
  return status;
}

}  // namespace foretoken
