#include "apps/matrix/matrix_runner.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "apps/terminal/child_process.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return {};
  const size_t begin = text.find_last_of('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin + 1) + 1);
}

std::string how_it_ended(const ProcessResult& result, const MatrixRunOptions& options) {
  if (result.end == ProcessEnd::kTime) {
    return "it did not end within " + std::to_string(options.time_limit.count()) + " s";
  }
  const std::string said = last_line(result.err);
  const std::string behind = said.empty() ? "" : "; its last words: " + said;
  if (result.end == ProcessEnd::kSignal) {
    return std::string("the process was ended by ") + strsignal(result.code) + behind;
  }
  return "the process ended with code " + std::to_string(result.code) + behind;
}

std::string shell_line(const std::vector<std::string>& arguments) {
  std::string line = "foretoken";
  for (const std::string& each : arguments) {
    const bool quoted = each.find_first_of(" {\"") != std::string::npos;
    line += quoted ? " '" + each + "'" : " " + each;
  }
  return line;
}

Result<std::map<std::string, CellResult>> known_results(const std::string& path) {
  std::map<std::string, CellResult> known;
  std::ifstream file(path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    Json result = Json::parse(line, nullptr, false);
    // A line that was being written when the last run ended.
    if (result.is_discarded() && file.peek() == std::ifstream::traits_type::eof()) break;
    const Result<MatrixCell> cell = result.is_object() ? read_cell(result.value("cell", Json()))
                                                       : invalid_argument("no object");
    if (!cell.ok()) {
      return invalid_argument(path + ", line " + std::to_string(number) +
                              " is no result of foretoken matrix; name another --results file");
    }
    known[cell_id(cell.value())] = std::move(result);
  }
  return known;
}

}  // namespace

CellResult decided(const MatrixCell& cell) {
  CellResult result = {{"cell", cell_json(cell)}, {"verdict", "not run"}};
  const Status status = check_cell(cell);
  if (status.ok()) return result;
  result["verdict"] = "unsupported";
  result["reason"] = status.message();
  return result;
}

std::vector<std::string> cell_arguments(const MatrixCell& cell, const CellRunOptions& options) {
  return {"matrix",        "--run-cell",    cell_json(cell).dump(),
          "--work-folder", options.folder,  "--size",
          options.size,    "--num-prompts", std::to_string(options.num_prompts)};
}

CellResult result_of_process(const MatrixCell& cell, const MatrixRunOptions& options) {
  const std::vector<std::string> arguments = cell_arguments(cell, options.cell);
  std::vector<std::string> command = {kThisProgram};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Clock::time_point begin = Clock::now();
  const ProcessResult ended = run_process(command, {.limit = options.time_limit});
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  CellResult result = {{"cell", cell_json(cell)}};
  const Json said = Json::parse(last_line(ended.out), nullptr, false);
  if (ended.end == ProcessEnd::kExit && ended.code == 0 && said.is_object()) {
    result.update(said);
  } else {
    result["verdict"] = "red";
    result["reason"] = how_it_ended(ended, options);
  }
  result["seconds"] = seconds;
  result["command"] = shell_line(arguments);
  return result;
}

Result<std::vector<CellResult>> run_cells(const std::vector<MatrixCell>& cells,
                                          const MatrixRunOptions& options,
                                          const std::function<void(const CellResult&)>& progress) {
  FT_ASSIGN_OR_RETURN(auto known, known_results(options.results));
  std::ofstream file(options.results, std::ios::app);
  if (!file) return invalid_argument("cannot write " + options.results);
  std::vector<CellResult> results;
  for (const MatrixCell& cell : cells) {
    if (options.cancel != nullptr && options.cancel->load()) return aborted("interrupted");
    CellResult result = decided(cell);
    const auto found = known.find(cell_id(cell));
    if (result["verdict"] == "not run") {
      if (found != known.end()) {
        result = found->second;
      } else {
        result = result_of_process(cell, options);
        file << result.dump() << std::endl;
      }
    }
    progress(result);
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace foretoken
