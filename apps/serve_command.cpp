#include <malloc.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <memory>
#include <thread>

#include "apps/flags/vllm_environment.h"
#include "apps/options/commands.h"
#include "apps/options/serve_options.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/report.h"
#include "base/json_log.h"
#include "base/log.h"
#include "engine/start/host_flags.h"
#include "engine/start/parallel_checks.h"
#include "http/server/file_watch.h"
#include "serve/fields/request_body.h"
#include "serve/routes/info_handlers.h"
#include "serve/routes/service.h"

namespace foretoken {
namespace {

using Clock = std::chrono::steady_clock;

void log_access(const http::AccessRecord& record) {
  const std::chrono::duration<double, std::milli> elapsed = record.duration;
  log_event("http", {{"client", record.client},
                     {"method", record.method},
                     {"target", record.target},
                     {"status", record.status},
                     {"bytes", record.num_bytes},
                     {"ms", std::round(elapsed.count() * 10) / 10},
                     {"id", record.id}});
}

// Engines that fail together.
bool fail_together(const ParallelConfig& parallel) {
  if (has_one_front_end(parallel, process_environment)) return true;
  return parallel.data_parallel_size > 1 && parallel.enable_expert_parallel;
}

// An engine with a server before it.
class RunningServer {
 public:
  // max_loras: 0 where requests name no adapters. ends_with_ranks: the engine ends where one of its
  // ranks does.
  RunningServer(std::unique_ptr<Engine> engine, ServeConfig config, bool log_requests,
                int max_loras, bool ends_with_ranks)
      : engine_(std::move(engine)),
        service_(*engine_, std::move(config), log_requests, max_loras),
        ends_with_ranks_(ends_with_ranks || engine_->info().ranks_per_engine > 1) {}

  // No thread of the server or the pool calls the engine once it ends, and the engine's outputs
  // still find the context.
  ~RunningServer() {
    if (server_ != nullptr) server_->stop();
    service_.stop();
    engine_.reset();
  }

  Status listen(http::ServerConfig config) {
    config.access_log = [this, log = std::move(config.access_log)](const auto& record) {
      service_.count_http(record);
      if (log) log(record);
    };
    FT_ASSIGN_OR_RETURN(server_, http::Server::start(std::move(config), service_.routes()));
    return {};
  }

  // Lets running requests end; after the deadline they end with what they have, at once where the
  // engine sleeps. True when none was cut short.
  bool drain(std::chrono::milliseconds deadline) {
    constexpr std::chrono::seconds kLastWrites(5);
    service_.drain();
    if (engine_->is_sleeping()) deadline = std::chrono::milliseconds(0);
    if (server_->drain(deadline)) return true;
    FT_LOG(warn, "{} requests still run and are ended", num_requests());
    service_.abort_all();
    server_->drain(kLastWrites);
    return false;
  }

  const http::Server& server() const { return *server_; }
  // Has connections from now on use what the TLS files hold now.
  void reload_tls() {
    const Status status = server_->reload_tls();
    if (status.ok()) {
      FT_LOG(info, "certificates were read again");
    } else {
      FT_LOG(warn, "the certificates stay as they were: {}", status.message());
    }
  }
  // That wait or run.
  int num_requests() const { return service_.context().gate.num_requests(); }
  const std::string& model_name() const { return service_.context().model_name(); }
  // Why the ranks of the engine have ended, if they have: they cannot come back in this process.
  Status ranks_status() const { return ends_with_ranks_ ? engine_health(*engine_) : Status(); }

 private:
  std::unique_ptr<Engine> engine_;
  Service service_;
  const bool ends_with_ranks_;
  std::unique_ptr<http::Server> server_;
};

// Balancers that know the engines by their ports have those of this host alone.
void keep_to_this_host(ParallelConfig& parallel) {
  if (parallel.data_parallel_size_local >= 0 || parallel.nnodes > 1) {
    parallel.data_parallel_hybrid_lb = true;
  }
}

int num_engines_here(const ParallelConfig& parallel) {
  return parallel.data_parallel_size_local >= 0 ? parallel.data_parallel_size_local
                                                : parallel.data_parallel_size;
}

Result<std::unique_ptr<RunningServer>> start_server(ServeOptions& options) {
  std::vector<std::string> warnings;
  FT_RETURN_IF_ERROR(apply_vllm_variables(vllm_variables(), &options.engine.config, &options.http,
                                          &options.engine.log_level, &warnings));
  init_logging(options.engine.log_level.c_str());
  if (options.engine.log_format == "json") use_json_logs();
  for (const std::string& warning : warnings) FT_LOG(warn, "{}", warning);
  options.engine.config.measure_when_idle = true;
  if (options.port_per_engine) keep_to_this_host(options.engine.config.parallel);
  FT_ASSIGN_OR_RETURN(const EngineConfig config, options.engine.resolve());
  FT_ASSIGN_OR_RETURN(const ParallelConfig parallel, with_hosts(config.parallel));
  if (options.port_per_engine) options.http.num_ports = std::max(num_engines_here(parallel), 1);
  FT_RETURN_IF_ERROR(options.finish(config));
  options.serve.runtime_adapters = allows_runtime_adapters(vllm_variables());
  // A port in use is known before a large model is loaded.
  FT_RETURN_IF_ERROR(http::Server::probe(options.http));
  FT_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, start_engine(options.engine));
  http::ServerConfig http = options.http;
  http.error_body = http_error_body;
  if (options.access_log) http.access_log = log_access;
  auto server = std::make_unique<RunningServer>(
      std::move(engine), options.serve, options.log_requests,
      config.enable_lora ? config.max_loras : 0, fail_together(parallel));
  FT_RETURN_IF_ERROR(server->listen(std::move(http)));
  return server;
}

std::vector<std::string> watched_files(const ServeOptions& options) {
  const http::TlsConfig& tls = options.http.tls;
  if (!options.ssl_refresh) return {};
  return {tls.certfile, tls.keyfile, tls.ca_certs};
}

// glibc keeps what large requests have left behind, also where it is whole pages; a server that
// rests gives it back now and then. The error: why the engine's ranks have ended.
Status wait_for_interrupt(RunningServer& running, const ServeOptions& options) {
  constexpr std::chrono::seconds kBetween(30);
  constexpr std::chrono::milliseconds kBetweenLooks(250);
  http::FileWatch certificates(watched_files(options));
  Clock::time_point next = Clock::now() + kBetween;
  Clock::time_point next_look = Clock::now();
  while (!interrupt_flag().load()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (Clock::now() >= next_look) {
      FT_RETURN_IF_ERROR(running.ranks_status());
      if (certificates.changed()) running.reload_tls();
      next_look = Clock::now() + kBetweenLooks;
    }
    if (Clock::now() < next || running.num_requests() > 0) continue;
    malloc_trim(0);
    next = Clock::now() + kBetween;
  }
  return {};
}

// A supervisor starts the program again. Answers that are being written have a moment.
int end_without_ranks(RunningServer& running, const Status& why) {
  report_error(why.message());
  running.drain(std::chrono::milliseconds(500));
  return kExitError;
}

int serve(ServeOptions& options) {
  const Clock::time_point start = Clock::now();
  catch_interrupts();
  // Requests are answered whoever reads the log, or has stopped to.
  std::signal(SIGPIPE, SIG_IGN);
  Result<std::unique_ptr<RunningServer>> started = start_server(options);
  if (interrupt_flag().load()) return report_interrupt("while starting");
  if (!started.ok()) {
    report_error(started.status().message());
    return kExitError;
  }
  RunningServer& running = *started.value();
  std::printf("serving %s at %s, started in %.2f s\n", running.model_name().c_str(),
              running.server().address().c_str(),
              std::chrono::duration<double>(Clock::now() - start).count());
  std::fflush(stdout);
  const Status ranks = wait_for_interrupt(running, options);
  if (!ranks.ok()) return end_without_ranks(running, ranks);
  FT_LOG(info, "shutting down; running requests have {} s", options.shutdown_timeout);
  return running.drain(options.drain_deadline()) ? 0 : interrupt_exit_code();
}

}  // namespace

void add_serve_command(CLI::App& app, std::function<int()>* run) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command =
      app.add_subcommand("serve", "Serve a model over HTTP with OpenAI's and Anthropic's APIs");
  options->add_to(*command);
  command->callback([options, run] { *run = [options] { return serve(*options); }; });
}

}  // namespace foretoken
