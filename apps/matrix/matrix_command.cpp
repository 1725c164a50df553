#include <fmt/chrono.h>
#include <fmt/format.h>
#include <foretoken/version.h>

#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "apps/flags/flag_table.h"
#include "apps/matrix/matrix_report.h"
#include "apps/matrix/matrix_rows.h"
#include "apps/matrix/matrix_runner.h"
#include "apps/options/commands.h"
#include "apps/terminal/file_text.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/report.h"
#include "base/log.h"
#include "device/device_traits.h"
#include "kernels/devices/open_device.h"

namespace foretoken {
namespace {

// Where there are thousands, they share what they can.
constexpr int kCellsPerProcess = 16;

struct MatrixOptions {
  std::string device = kReferenceDevice;
  std::string rows_file;
  std::string run_cell;
  std::string part;
  std::vector<std::string> only;
  std::vector<std::string> reports;
  std::string folder;
  std::string results;
  std::string output = "matrix";
  std::string size = "tiny";
  std::string log_level = "error";
  int num_prompts = 24;
  int max_cells = 0;
  int max_ranks = 8;
  int time_limit = 120;
  int num_reference_prompts = 0;
  int cells_per_process = 0;  // 0: as --every-cell wants
  bool skip_rows = false;
  bool every_cell = false;
  bool print_cells = false;
};

CellRunOptions cell_options(const MatrixOptions& given) {
  CellRunOptions options;
  options.folder = given.folder.empty()
                       ? (std::filesystem::temp_directory_path() / "foretoken-matrix").string()
                       : given.folder;
  options.size = given.size;
  options.num_prompts = given.num_prompts;
  options.num_reference_prompts = given.num_reference_prompts;
  return options;
}

// In the process of some cells.
int run_told(const MatrixOptions& given) {
  const Status status =
      run_told_cells(given.run_cell, cell_options(given), std::chrono::seconds(given.time_limit));
  if (status.ok()) return 0;
  report_error("--run-cell: " + status.message());
  return kExitUsage;
}

// vLLM's list, or that of the file.
Result<std::vector<MatrixCell>> listed_cells(const MatrixOptions& given) {
  const MatrixPlace place = {given.device, given.max_ranks};
  if (!given.rows_file.empty()) {
    FT_ASSIGN_OR_RETURN(const std::string text, read_input_file(given.rows_file));
    return read_cells(text, given.rows_file, place);
  }
  return given.skip_rows ? std::vector<MatrixCell>() : row_cells(place);
}

// Of the product, whose cells and decisions have the same order.
std::vector<MatrixCell> sampled_cells(const MatrixOptions& given,
                                      const std::vector<MatrixCell>& product,
                                      const std::vector<CellResult>& decisions) {
  std::vector<MatrixCell> supported;
  for (size_t i = 0; i < decisions.size(); ++i) {
    if (decisions[i]["verdict"] == "unsupported") continue;
    if (product[i].num_ranks() <= given.max_ranks) supported.push_back(product[i]);
  }
  if (given.every_cell) return supported;
  return pairwise_sample(supported, static_cast<size_t>(given.max_cells));
}

struct MatrixPart {
  int part = 1;
  int parts = 1;
};

// Of "3/40" the third of forty parts; all where nothing is given.
Result<MatrixPart> read_part(const std::string& text) {
  MatrixPart own;
  if (text.empty()) return own;
  const char* end = text.data() + text.size();
  const auto part = std::from_chars(text.data(), end, own.part);
  const bool is_cut = part.ec == std::errc() && part.ptr != end && *part.ptr == '/';
  const auto parts = std::from_chars(is_cut ? part.ptr + 1 : end, end, own.parts);
  if (parts.ec != std::errc() || parts.ptr != end || own.part < 1 || own.parts < own.part) {
    return invalid_argument("--part '" + text +
                            "' must be I/N with I of 1 to N, as 3/40, and N below 2147483648");
  }
  return own;
}

// Of the host not how many cores it has.
std::string device_name(const std::string& name) {
  const DeviceTraits& traits = *find_device_type(name);
  if (traits.uses_host_cores) return "CPU";
  const auto device = open_device(traits.type, 0, 0);
  return device.ok() ? device.value()->name() : traits.title;
}

MatrixFacts make_facts(const MatrixOptions& given) {
  return {kVersion, device_name(given.device),
          fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))), given.size};
}

Status write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  return file.flush() ? Status() : invalid_argument("cannot write " + path);
}

// Before hours of cells rather than behind them.
Status check_output(const std::string& output) {
  for (const char* ending : {".md", ".html", ".json"}) {
    const std::string path = output + ending;
    if (!std::ofstream(path, std::ios::app)) return invalid_argument("cannot write " + path);
  }
  return {};
}

int cells_per_process(const MatrixOptions& given) {
  if (given.cells_per_process > 0) return given.cells_per_process;
  return given.every_cell ? kCellsPerProcess : 1;
}

std::vector<CellResult> decided_cells(const std::vector<MatrixCell>& cells) {
  std::vector<CellResult> decisions;
  for (const MatrixCell& cell : cells) decisions.push_back(decided(cell));
  return decisions;
}

void print_cells(const std::vector<MatrixCell>& cells) {
  auto list = nlohmann::ordered_json::array();
  for (const MatrixCell& cell : cells) list.push_back(cell_json(cell));
  std::printf("%s\n", list.dump(1).c_str());
}

Result<ResultsFile> open_results(const MatrixOptions& given) {
  FT_RETURN_IF_ERROR(check_output(given.output));
  return ResultsFile::open(given.results.empty() ? given.output + ".jsonl" : given.results,
                           cell_options(given));
}

// Adds to `results` as cells end.
Status run_chosen(const MatrixOptions& given, const MatrixFacts& facts,
                  const std::vector<MatrixCell>& cells, ResultsFile& known,
                  std::vector<CellResult>& results) {
  const MatrixRunOptions options{.cell = cell_options(given),
                                 .time_limit = std::chrono::seconds(given.time_limit),
                                 .cells_per_process = static_cast<size_t>(cells_per_process(given)),
                                 .own_rows = !given.rows_file.empty(),
                                 .cancel = &interrupt_flag()};
  const auto tell = [&](const CellResult& result) {
    results.push_back(result);
    const std::string reason = result.value("reason", "");
    std::fprintf(stderr, "%zu of %zu: %s: %s%s%s\n", results.size(), cells.size(),
                 cell_id(read_cell(result["cell"]).value()).c_str(),
                 status_words(result, facts).c_str(), reason.empty() ? "" : ": ", reason.c_str());
  };
  return run_cells(cells, options, known, tell).status();
}

Status write_reports(const MatrixOptions& given, const MatrixFacts& facts,
                     const std::vector<CellResult>& results,
                     const std::vector<CellResult>& product) {
  const std::string markdown = matrix_markdown(results, product, facts);
  std::fputs(markdown.c_str(), stdout);
  FT_RETURN_IF_ERROR(write_text(given.output + ".md", markdown));
  FT_RETURN_IF_ERROR(write_text(given.output + ".html", matrix_page(results, product, facts)));
  FT_RETURN_IF_ERROR(
      write_text(given.output + ".json", matrix_json(results, product, facts).dump(1) + "\n"));
  for (const CellResult& result : results) {
    if (result["verdict"] == "red") return aborted("cells are red; see the table");
  }
  return {};
}

// One behind the other, as a page has runs of several machines.
Status print_reports(const std::vector<std::string>& paths) {
  std::string all;
  for (const std::string& path : paths) {
    FT_ASSIGN_OR_RETURN(const std::string text, read_input_file(path));
    FT_ASSIGN_OR_RETURN(const std::string tables, reprinted_report(text, path));
    all += (all.empty() ? "" : "\n") + tables;
  }
  std::fputs(all.c_str(), stdout);
  return {};
}

// What can be wrong with the flags is told before the product is decided, which takes seconds.
Status run_matrix(const MatrixOptions& given) {
  FT_ASSIGN_OR_RETURN(const MatrixPart part, read_part(given.part));
  if (!given.rows_file.empty() && (given.every_cell || given.max_cells > 0 || given.skip_rows)) {
    return invalid_argument(
        "--rows is a list of its own; leave out --skip-rows, --max-cells and --every-cell, or run "
        "the product without --rows");
  }
  FT_ASSIGN_OR_RETURN(std::vector<MatrixCell> cells, listed_cells(given));
  std::optional<ResultsFile> known;
  if (!given.print_cells) {
    FT_ASSIGN_OR_RETURN(known, open_results(given));
  }
  const std::vector<MatrixCell> all = product_cells(given.device);
  std::vector<CellResult> product;
  if (given.every_cell || given.max_cells > 0) {
    product = decided_cells(all);
    const std::vector<MatrixCell> sample = sampled_cells(given, all, product);
    cells.insert(cells.end(), sample.begin(), sample.end());
  }
  FT_ASSIGN_OR_RETURN(cells, cells_named(cells, given.only));
  cells = part_of(cells, part.part, part.parts);
  if (given.print_cells) {
    print_cells(cells);
    return {};
  }
  const MatrixFacts facts = make_facts(given);
  std::vector<CellResult> results;
  const Status ran = run_chosen(given, facts, cells, *known, results);
  // What ended has its report, whatever stopped the others.
  if (!ran.ok() && results.empty()) return ran;
  if (ran.ok() && product.empty() && given.rows_file.empty()) product = decided_cells(all);
  const Status written = write_reports(given, facts, results, product);
  return ran.ok() ? written : ran;
}

int matrix(const MatrixOptions& given) {
  init_logging(given.log_level.c_str());
  if (!given.run_cell.empty()) return run_told(given);
  catch_interrupts();
  const Status status = given.reports.empty() ? run_matrix(given) : print_reports(given.reports);
  if (interrupt_flag().load()) {
    return report_interrupt("while cells ran; running again goes on behind the last one");
  }
  if (status.ok()) return 0;
  report_error(status.message());
  return kExitError;
}

void add_run_flags(CLI::App* command, MatrixOptions& options) {
  command->add_option("--num-prompts", options.num_prompts, "Prompts of a cell")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  command
      ->add_option("--size", options.size,
                   "Synthetic checkpoints: tiny, 8b (models of that kind have the shape of Llama 3 "
                   "8B) or r1 (models of latents that of DeepSeek R1, 3 layers and 64 experts)")
      ->capture_default_str()
      ->check(CLI::IsMember({"tiny", "8b", "r1"}));
  command
      ->add_option("--time-limit", options.time_limit, "Seconds of a cell, after which it is red")
      ->capture_default_str()
      ->check(CLI::Range(1, 86400));
  command
      ->add_option("--cells-per-process", options.cells_per_process,
                   "Neighbours that differ in their drafters alone and share a process, and what "
                   "runs without drafts (default: 1, with --every-cell 16)")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--num-reference-prompts", options.num_reference_prompts,
                   "Prompts (8 at most) whose log-probabilities are compared with the CPU's where "
                   "checkpoints are not tiny, which takes a CPU that reads them a minute")
      ->capture_default_str()
      ->check(CLI::Range(0, 8));
  command->add_option("--work-folder", options.folder,
                      "Folder of the checkpoints (default: foretoken-matrix in the folder for "
                      "temporary files)");
  command->add_option(
      "--results", options.results,
      "File of results, a line a cell: what stands there with the same size and prompts is not run "
      "again (default: that of --output with .jsonl)");
  command->add_option("--output", options.output, "Path of the reports without .md, .html, .json")
      ->capture_default_str();
}

}  // namespace

void add_matrix_command(CLI::App& app, std::function<int()>* run) {
  auto options = std::make_shared<MatrixOptions>();
  CLI::App* command = app.add_subcommand(
      "matrix", "Decide what goes together, and run it: each cell in a process of its own");
  std::vector<std::string> devices;
  for (const DeviceTraits& device : device_types()) devices.emplace_back(device.name);
  command->add_option("--device", options->device, device_names())
      ->capture_default_str()
      ->check(CLI::IsMember(devices));
  command->add_option(
      "--rows", options->rows_file,
      "YAML or JSON file of cells to run instead of vLLM's list, as --print-cells writes it");
  command->add_flag("--skip-rows", options->skip_rows, "Leave vLLM's list out");
  command
      ->add_option("--max-cells", options->max_cells,
                   "Cells of the product of all parts that are run beside, a pairwise sample")
      ->capture_default_str()
      ->check(CLI::Range(0, 100000));
  command->add_flag("--every-cell", options->every_cell,
                    "Run all cells of the product that are supported, instead of a sample");
  command
      ->add_option("--max-ranks", options->max_ranks,
                   "Rows of more ranks have so many, or the power of two below")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  command
      ->add_option("--only", options->only,
                   "Only cells with this part in the names that are printed as they run, as row8, "
                   "eagle or TP2; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--part", options->part,
                      "I/N: only the I-th of N parts of the cells, for runs that share them");
  command->add_flag("--print-cells", options->print_cells,
                    "Print what would be run, and run nothing");
  command->add_option("--print-reports", options->reports,
                      "Print the tables of these reports (.json of --output), and run nothing");
  command->add_option("--run-cell", options->run_cell, "")->group("");
  command
      ->add_option("--log-level", options->log_level,
                   "Least level of a cell's process that is logged to stderr")
      ->capture_default_str()
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error"}));
  add_run_flags(command, *options);
  command->callback([options, run] { *run = [options] { return matrix(*options); }; });
}

}  // namespace foretoken
