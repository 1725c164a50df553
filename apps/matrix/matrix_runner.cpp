#include "apps/matrix/matrix_runner.h"

#include <fstream>
#include <map>

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;
using KnownResults = std::map<std::string, CellResult>;

Result<KnownResults> known_results(const std::string& path) {
  KnownResults known;
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

bool is_to_run(const MatrixCell& cell, const KnownResults& known) {
  return known.count(cell_id(cell)) == 0 && check_cell(cell).ok();
}

// The cells from `begin` on that one process runs; none where that one is not to be run.
std::vector<MatrixCell> cells_of_process(const std::vector<MatrixCell>& cells, size_t begin,
                                         const KnownResults& known,
                                         const MatrixRunOptions& options) {
  std::vector<MatrixCell> own;
  for (size_t i = begin; i < cells.size() && own.size() < options.cells_per_process; ++i) {
    if (!is_to_run(cells[i], known) || !differ_in_drafters(cells[begin], cells[i])) break;
    own.push_back(cells[i]);
  }
  return own;
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

Result<std::vector<CellResult>> run_cells(const std::vector<MatrixCell>& cells,
                                          const MatrixRunOptions& options,
                                          const std::function<void(const CellResult&)>& progress) {
  FT_ASSIGN_OR_RETURN(KnownResults known, known_results(options.results));
  std::ofstream file(options.results, std::ios::app);
  if (!file) return invalid_argument("cannot write " + options.results);
  std::vector<CellResult> results;
  while (results.size() < cells.size()) {
    if (options.cancel != nullptr && options.cancel->load()) return aborted("interrupted");
    const size_t begin = results.size();
    const std::vector<MatrixCell> own = cells_of_process(cells, begin, known, options);
    for (const CellResult& result : run_in_processes(own, options)) {
      file << result.dump() << std::endl;
      known[cell_id(cells[results.size()])] = result;
      results.push_back(result);
    }
    if (own.empty()) {
      const auto found = known.find(cell_id(cells[begin]));
      const CellResult said = decided(cells[begin]);
      results.push_back(said["verdict"] == "not run" && found != known.end() ? found->second
                                                                             : said);
    }
    for (size_t i = begin; i < results.size(); ++i) progress(results[i]);
  }
  return results;
}

}  // namespace foretoken
