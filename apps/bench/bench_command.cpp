#include "apps/bench/bench_command.h"

#include "apps/options/commands.h"

namespace foretoken {

void add_bench_command(CLI::App& app, std::function<int()>* run) {
  CLI::App* bench = app.add_subcommand("bench", "Measure speed");
  bench->require_subcommand(1);
  add_bench_latency(*bench, run);
  add_bench_throughput(*bench, run);
  add_bench_serve(*bench, run);
  add_bench_startup(*bench, run);
  add_bench_pairs(*bench, run);
  add_bench_decode(*bench, run);
  add_bench_forward(*bench, run);
  add_bench_kernels(*bench, run);
  add_bench_grammar(*bench, run);
  add_bench_host(*bench, run);
}

}  // namespace foretoken
