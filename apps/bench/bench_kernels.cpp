#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/bench/bench_command.h"
#include "apps/bench/bench_run.h"
#include "apps/bench/bench_steps.h"
#include "apps/terminal/interrupt.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

struct KernelOptions {
  StepBenchOptions steps;
  std::vector<int> rows_per_seq = {1};
};

struct KernelShape {
  int batch = 1;
  int rows = 1;
};

json line_json(const OpTime& time, const DeviceLimits& limits) {
  const auto bytes = static_cast<double>(time.cost.bytes());
  const auto flops = static_cast<double>(time.cost.flops);
  json line = {{"op", time.name},
               {"shape", time.shape},
               {"count", time.count},
               {"us", time.ns * 1e-3},
               {"us_in_step", time.in_step_ns * 1e-3},
               {"bytes", time.cost.bytes()},
               {"flops", time.cost.flops}};
  if (time.ns <= 0 || time.cost.bytes() == 0) return line;
  line["gb_per_second"] = bytes / time.ns;
  line["tflop_per_second"] = flops / time.ns * 1e-3;
  line["percent_of_limit"] = 100 * limits.seconds(bytes, flops) * 1e9 / time.ns;
  return line;
}

Result<json> measure_kernels_of_shape(StepBenchRun& run, const KernelOptions& options,
                                      const KernelShape& shape) {
  FT_RETURN_IF_ERROR(run.bench->upload(std::vector<MadeUpSequence>(
      static_cast<size_t>(shape.batch), {options.steps.context, shape.rows})));
  const std::vector<ListedOp> ops = run.bench->step_ops();
  FT_ASSIGN_OR_RETURN(const std::vector<OpTime> times,
                      run.bench->op_times(ops, options.steps.seconds));
  FT_ASSIGN_OR_RETURN(const double graph_ns, run.bench->step_ns(ops));
  FT_ASSIGN_OR_RETURN(const TouchedExperts experts, run.bench->touched_experts(ops));
  json all = {{"batch_size", shape.batch},
              {"rows_per_seq", shape.rows},
              {"context", options.steps.context}};
  double sum_ns = 0;
  OpCost cost;
  all["ops"] = json::array();
  for (const OpTime& time : times) {
    all["ops"].push_back(line_json(time, run.limits));
    sum_ns += time.ns * time.count;
    for (int i = 0; i < time.count; ++i) cost += time.cost;
  }
  const auto bytes = static_cast<double>(cost.bytes());
  const auto flops = static_cast<double>(cost.flops);
  all["sum_us"] = sum_ns * 1e-3;
  all["graph_us"] = graph_ns * 1e-3;
  all["limit_us"] = 1e6 * run.limits.seconds(bytes, flops);
  all["gb_per_second"] = bytes / graph_ns;
  all["tflop_per_second"] = flops / graph_ns * 1e-3;
  if (experts.mixtures > 0) {
    all["experts"] = {{"mixtures", experts.mixtures},
                      {"count", experts.count},
                      {"touched", experts.touched},
                      {"expected", experts.expected}};
  }
  return all;
}

void print_kernels_of(const json& all) {
  std::string text = fmt::format(
      "\nbatch {}, {} row{} a sequence, {} tokens behind each\n"
      "{:<17} {:<22} {:>5} {:>9} {:>9} {:>9} {:>6} {:>9} {:>8} {:>8}\n",
      all["batch_size"].get<int>(), all["rows_per_seq"].get<int>(),
      all["rows_per_seq"].get<int>() == 1 ? "" : "s", all["context"].get<int>(), "op", "shape",
      "count", "us each", "in step", "us in all", "share", "GB/s", "TFLOP/s", "of limit");
  const double sum = all["sum_us"].get<double>();
  for (const json& line : all["ops"]) {
    const double us = line["us"].get<double>();
    const double us_in_all = us * line["count"].get<int>();
    text += fmt::format("{:<17} {:<22} {:>5} ", line["op"].get<std::string>(),
                        line["shape"].get<std::string>(), line["count"].get<int>());
    text += fmt::format("{:9.2f} {:9.2f} {:9.1f} {:4.1f} %", us, line["us_in_step"].get<double>(),
                        us_in_all, 100 * us_in_all / sum);
    if (line.contains("gb_per_second")) {
      text += fmt::format(" {:9.1f} {:8.2f} {:6.1f} %", line["gb_per_second"].get<double>(),
                          line["tflop_per_second"].get<double>(),
                          line["percent_of_limit"].get<double>());
    }
    text += "\n";
  }
  const double graph = all["graph_us"].get<double>();
  const double limit = all["limit_us"].get<double>();
  text += fmt::format(
      "sum of the ops {:.1f} us; the step as one graph {:.1f} us, {:.1f} GB/s, {:.2f} TFLOP/s, "
      "{:.1f} % of the limit ({:.1f} us)\n",
      sum, graph, all["gb_per_second"].get<double>(), all["tflop_per_second"].get<double>(),
      100 * limit / graph, limit);
  if (all.contains("experts")) {
    const json& experts = all["experts"];
    text += fmt::format(
        "experts touched: {:.1f} of {:g} in the mean over {} mixtures; where rows choose "
        "independently {:.1f}, which is what the limit counts\n",
        experts["touched"].get<double>(), experts["count"].get<double>(),
        experts["mixtures"].get<int>(), experts["expected"].get<double>());
  }
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

Status run_kernels(const KernelOptions& options) {
  FT_ASSIGN_OR_RETURN(StepBenchRun run, start_step_bench(options.steps, options.rows_per_seq));
  std::fputs(limits_text(run).c_str(), stdout);
  json all = {{"device", run.engine->info().device},
              {"read_bytes_per_second", run.limits.bytes_per_second},
              {"flops_per_second", run.limits.flops_per_second}};
  all["shapes"] = json::array();
  for (const int batch : options.steps.batch_sizes) {
    for (const int rows : options.rows_per_seq) {
      if (interrupt_flag().load()) return aborted("interrupted");
      FT_ASSIGN_OR_RETURN(const json found, measure_kernels_of_shape(run, options, {batch, rows}));
      print_kernels_of(found);
      all["shapes"].push_back(found);
    }
  }
  const std::string& file = options.steps.output_json;
  return file.empty() ? Status() : write_bench_json(all, file);
}

}  // namespace

void add_bench_kernels(CLI::App& bench, std::function<int()>* run) {
  CLI::App* command = bench.add_subcommand(
      "kernels",
      "Time, bytes and operations of each kind of op, by itself and inside of a step, against the "
      "device's limits");
  auto options = std::make_shared<KernelOptions>();
  command
      ->add_option("--rows-per-seq", options->rows_per_seq,
                   "Rows of each sequence: 1 and one for each draft; more than 17 are a prompt's")
      ->delimiter(',')
      ->capture_default_str()
      ->check(at_least(1));
  options->steps.add_to(*command);
  command->callback([options, run] {
    *run = [options] {
      catch_interrupts();
      return bench_exit_code(run_kernels(*options));
    };
  });
}

}  // namespace foretoken
