#include "apps/matrix/matrix_process.h"

#include <foretoken/version.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "apps/matrix/matrix_run.h"
#include "apps/terminal/child_process.h"
#include "apps/terminal/shell_word.h"
#include "base/log.h"

namespace foretoken {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr int kExitLate = 75;
// Of a process, beside its cells': to start, and to say that one was late.
constexpr std::chrono::seconds kSlack{10};

std::string too_late(std::chrono::seconds limit) {
  return "it did not end within " + std::to_string(limit.count()) + " s";
}

// What the signal's handler writes, where no memory can be had: the one of two lines that is whole.
struct LateLine {
  std::array<char, 256> text;
  size_t size = 0;
};
std::array<LateLine, 2> late_lines;
std::atomic<size_t> late_line_now = 0;

void say_late(int) {
  const LateLine& line = late_lines[late_line_now];
  [[maybe_unused]] const ssize_t count = write(STDOUT_FILENO, line.text.data(), line.size);
  _exit(kExitLate);
}

// What a process that is late is to say from now on.
void set_late_line(std::chrono::seconds limit, const std::string& what) {
  const std::string text = Json({{"verdict", "red"},
                                 {"reason", too_late(limit) + "; it stood at: " + what},
                                 {"seconds", limit.count()}})
                               .dump() +
                           "\n";
  const size_t other = 1 - late_line_now;
  LateLine& line = late_lines[other];
  line.size = std::min(text.size(), line.text.size());
  std::memcpy(line.text.data(), text.data(), line.size);
  late_line_now = other;
}

void watch_for_late_cells(std::chrono::seconds limit) {
  set_late_line(limit, "its start");
  struct sigaction action{};
  action.sa_handler = say_late;
  sigaction(SIGALRM, &action, nullptr);
  alarm(static_cast<unsigned>(limit.count()));
}

std::vector<std::string> cell_arguments(const Json& cells, const MatrixRunOptions& options) {
  std::vector<std::string> arguments = {
      "matrix",          "--run-cell",        cells.dump(),
      "--work-folder",   options.cell.folder, "--size",
      options.cell.size, "--num-prompts",     std::to_string(options.cell.num_prompts)};
  if (options.cell.num_reference_prompts > 0) {
    arguments.insert(arguments.end(), {"--num-reference-prompts",
                                       std::to_string(options.cell.num_reference_prompts)});
  }
  return arguments;
}

std::string shell_line(const std::vector<std::string>& arguments) {
  std::string line = "foretoken";
  for (const std::string& each : arguments) line += " " + shell_word(each);
  return line;
}

// The results among the lines that a process printed.
std::vector<Json> said_results(const std::string& out) {
  std::vector<Json> results;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    Json result = Json::parse(line, nullptr, false);
    if (result.is_object() && result.contains("verdict")) results.push_back(std::move(result));
  }
  return results;
}

std::string last_words(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return {};
  const size_t begin = text.find_last_of('\n', end);
  return "; its last words: " + text.substr(begin + 1, end - begin);
}

std::string how_it_ended(const ProcessResult& result, const MatrixRunOptions& options) {
  if (result.end == ProcessEnd::kTime) return too_late(options.time_limit);
  if (result.end == ProcessEnd::kSignal) {
    return std::string("the process was ended by ") + strsignal(result.code) +
           last_words(result.err);
  }
  return "the process ended with code " + std::to_string(result.code) + last_words(result.err);
}

Json red(const std::string& reason, double seconds) {
  return {{"verdict", "red"}, {"reason", reason}, {"seconds", seconds}};
}

// Of the first of the cells, at least: what one process said, and how it ended where it said less.
std::vector<Json> run_process_of(const Json& cells, const MatrixRunOptions& options) {
  std::vector<std::string> command = {kThisProgram};
  const std::vector<std::string> arguments = cell_arguments(cells, options);
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.insert(command.end(), {"--time-limit", std::to_string(options.time_limit.count())});
  const auto limit = options.time_limit * static_cast<int64_t>(cells.size()) + kSlack;
  const Clock::time_point begin = Clock::now();
  const ProcessResult ended = run_process(command, {.limit = limit});
  std::vector<Json> results = said_results(ended.out);
  if (results.size() > cells.size()) results.resize(cells.size());
  const bool was_late = ended.end == ProcessEnd::kExit && ended.code == kExitLate;
  if (results.size() < cells.size() && !(was_late && !results.empty())) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    results.push_back(red(how_it_ended(ended, options), seconds));
  }
  return results;
}

}  // namespace

Json asked_json(const CellRunOptions& options) {
  return {{"version", kVersion},
          {"size", options.size},
          {"num_prompts", options.num_prompts},
          {"num_reference_prompts", options.num_reference_prompts}};
}

Result<std::vector<CellResult>> run_in_processes(const std::vector<MatrixCell>& cells,
                                                 const MatrixRunOptions& options) {
  std::vector<CellResult> results;
  const auto add = [&](const Json& said) {
    const MatrixCell& cell = cells[results.size()];
    CellResult result = {{"cell", cell_json(cell)}};
    result.update(said);
    if (options.own_rows && result.value("refused", false)) result["verdict"] = "unsupported";
    result["asked"] = asked_json(options.cell);
    result["command"] = shell_line(cell_arguments(cell_json(cell), options));
    results.push_back(std::move(result));
  };
  while (results.size() < cells.size()) {
    Json rest = Json::array();
    Status written;
    for (size_t i = results.size(); i < cells.size() && written.ok(); ++i) {
      const Result<MatrixFiles> files = write_cell_files(cells[i], options.cell);
      // What no checkpoint is written for is unsupported, which its own process says.
      if (!files.ok() && files.status().code() != StatusCode::kUnsupported) {
        written = files.status();
      } else {
        rest.push_back(cell_json(cells[i]));
      }
    }
    if (rest.empty() && results.empty()) return written;
    if (rest.empty()) break;
    for (const Json& said : run_process_of(rest, options)) add(said);
  }
  return results;
}

Status run_told_cells(const std::string& json, const CellRunOptions& options,
                      std::chrono::seconds limit) {
  Json list = Json::parse(json, nullptr, false);
  if (!list.is_array()) list = Json::array({list});
  std::vector<MatrixCell> cells;
  for (const Json& each : list) {
    FT_ASSIGN_OR_RETURN(MatrixCell cell, read_cell(each));
    cells.push_back(std::move(cell));
  }
  watch_for_late_cells(limit);
  const CellWatch watch = {.begins =
                               [&](const std::string& what) {
                                 FT_LOG(info, "cell: {}", what);
                                 set_late_line(limit, what);
                               },
                           .is_done =
                               [&](const Json& result) {
                                 std::printf("%s\n", result.dump().c_str());
                                 std::fflush(stdout);
                                 alarm(static_cast<unsigned>(limit.count()));
                               }};
  run_cells_here(cells, options, watch);
  alarm(0);
  return {};
}

}  // namespace foretoken
