#include <spdlog/fmt/fmt.h>

#include <algorithm>
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

struct ForwardOptions {
  StepBenchOptions steps;
  std::vector<int> rows_per_seq = {1};
  std::string bonus;
};

// Of a batch: each sequence has `rows`, and the first `num_bonus` of them one more.
struct ForwardShape {
  int batch = 1;
  int rows = 1;
  int num_bonus = 0;
  int num_rows() const { return batch * rows + num_bonus; }
};

// A number, or BS for the size of the batch; -1 for anything else.
int bound_of(const std::string& text, int batch) {
  if (text == "BS" || text == "bs") return batch;
  const bool digits =
      !text.empty() && text.size() < 7 && text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? std::stoi(text) : -1;
}

// "1..BS", "2..5", "3" or a list of those, for a batch; numbers beyond it are left out.
Result<std::vector<int>> bonus_counts(const std::string& text, int batch) {
  std::vector<int> counts;
  for (const std::string& part : CLI::detail::split(text, ',')) {
    const size_t dots = part.find("..");
    const int first = bound_of(part.substr(0, dots), batch);
    const int last = dots == std::string::npos ? first : bound_of(part.substr(dots + 2), batch);
    const bool reversed = last < first && part.find("BS") == std::string::npos;
    if (first < 1 || last < 1 || reversed) {
      return invalid_argument("--bonus '" + text +
                              "': must be counts from 1 up such as 1..BS, 2..5 or 1,3");
    }
    for (int count = first; count <= std::min(last, batch); ++count) counts.push_back(count);
  }
  return counts;
}

Result<std::vector<ForwardShape>> shapes_of(const ForwardOptions& options) {
  std::vector<ForwardShape> shapes;
  for (const int batch : options.steps.batch_sizes) {
    for (const int rows : options.rows_per_seq) shapes.push_back({batch, rows, 0});
    if (options.bonus.empty()) continue;
    FT_ASSIGN_OR_RETURN(const std::vector<int> counts, bonus_counts(options.bonus, batch));
    for (const int count : counts) {
      shapes.push_back({batch, options.rows_per_seq.front(), count});
    }
  }
  return shapes;
}

struct ForwardTimes {
  double graph_ms = 0;
  double eager_ms = 0;
  double floor_ms = 0;  // of weights, keys and values, or operations
};

Result<ForwardTimes> time_forward(StepBenchRun& run, const StepBenchOptions& options,
                                  bool with_logits) {
  const std::vector<ListedOp> ops = run.bench->forward_ops(with_logits);
  FT_ASSIGN_OR_RETURN(const OpCost cost, run.bench->cost(ops));
  FT_ASSIGN_OR_RETURN(const double graph_ns, run.bench->time_ns(ops, true, options.seconds));
  FT_ASSIGN_OR_RETURN(const double eager_ns, run.bench->time_ns(ops, false, options.seconds));
  const auto bytes = static_cast<double>(cost.weight_bytes + cost.kv_bytes);
  return ForwardTimes{graph_ns * 1e-6, eager_ns * 1e-6,
                      1e3 * run.limits.seconds(bytes, static_cast<double>(cost.flops))};
}

json times_json(const ForwardTimes& times) {
  return {{"graph_ms", times.graph_ms},
          {"eager_ms", times.eager_ms},
          {"floor_ms", times.floor_ms},
          {"percent_of_floor", 100 * times.floor_ms / times.graph_ms}};
}

Result<json> measure_shape(StepBenchRun& run, const ForwardOptions& options,
                           const ForwardShape& shape) {
  std::vector<MadeUpSequence> sequences;
  for (int i = 0; i < shape.batch; ++i) {
    sequences.push_back({options.steps.context, shape.rows + (i < shape.num_bonus ? 1 : 0)});
  }
  FT_RETURN_IF_ERROR(run.bench->upload(sequences));
  FT_ASSIGN_OR_RETURN(const ForwardTimes forward, time_forward(run, options.steps, false));
  FT_ASSIGN_OR_RETURN(const ForwardTimes logits, time_forward(run, options.steps, true));
  return json{{"batch_size", shape.batch},        {"rows_per_seq", shape.rows},
              {"bonus", shape.num_bonus},         {"rows", shape.num_rows()},
              {"context", options.steps.context}, {"forward", times_json(forward)},
              {"with_logits", times_json(logits)}};
}

constexpr const char* kRule =
    "----- ----- ----- ----- | --------- --------- ------- | --------- "
    "--------- -------\n";

void print_shape(const json& shape) {
  const auto times = [](const json& found) {
    return fmt::format("{:9.4f} {:9.4f} {:5.1f} %", found["graph_ms"].get<double>(),
                       found["eager_ms"].get<double>(), found["percent_of_floor"].get<double>());
  };
  fmt::print("{:5} {:5} {:5} {:5} | {} | {}\n", shape["batch_size"].get<int>(),
             shape["rows_per_seq"].get<int>(), shape["bonus"].get<int>(), shape["rows"].get<int>(),
             times(shape["forward"]), times(shape["with_logits"]));
  std::fflush(stdout);
}

Status run_forward(const ForwardOptions& options) {
  FT_ASSIGN_OR_RETURN(const std::vector<ForwardShape> shapes, shapes_of(options));
  std::vector<int> rows;
  for (const ForwardShape& shape : shapes)
    rows.push_back(shape.rows + (shape.num_bonus > 0 ? 1 : 0));
  FT_ASSIGN_OR_RETURN(StepBenchRun run, start_step_bench(options.steps, rows));
  fmt::print(
      "{}ms of one forward of the target, by the device's clock; percent of the floor: weights, "
      "keys and values / read bandwidth, or operations / rate\n"
      "{:5} {:5} {:5} {:5} | {:>9} {:>9} {:>7} | {:>9} {:>9} {:>7}\n{}",
      limits_text(run), "batch", "rows", "bonus", "all", "graph", "eager", "floor", "+ logits",
      "eager", "floor", kRule);
  json all = {{"device", run.engine->info().device},
              {"read_bytes_per_second", run.limits.bytes_per_second},
              {"flops_per_second", run.limits.flops_per_second}};
  all["shapes"] = json::array();
  for (const ForwardShape& shape : shapes) {
    if (interrupt_flag().load()) return aborted("interrupted");
    FT_ASSIGN_OR_RETURN(const json found, measure_shape(run, options, shape));
    print_shape(found);
    all["shapes"].push_back(found);
  }
  const std::string& file = options.steps.output_json;
  return file.empty() ? Status() : write_bench_json(all, file);
}

}  // namespace

void add_bench_forward(CLI::App& bench, std::function<int()>* run) {
  CLI::App* command = bench.add_subcommand(
      "forward", "ms of one forward of the target alone, with graphs and without");
  auto options = std::make_shared<ForwardOptions>();
  command
      ->add_option("--rows-per-seq", options->rows_per_seq,
                   "Rows of each sequence: 1 and one for each draft; more than 17 are a prompt's")
      ->delimiter(',')
      ->capture_default_str()
      ->check(at_least(1));
  command
      ->add_option("--bonus", options->bonus,
                   "Also with so many sequences that have a row more: 1..BS (the batch), 2..5, "
                   "1,3")
      ->type_name("COUNTS");
  options->steps.add_to(*command);
  command->callback([options, run] {
    *run = [options] {
      catch_interrupts();
      return bench_exit_code(run_forward(*options));
    };
  });
}

}  // namespace foretoken
