#include "apps/matrix/matrix_runner.h"

namespace foretoken {
namespace {

bool is_to_run(const MatrixCell& cell, const ResultsFile& known) {
  return known.find(cell) == nullptr && check_cell(cell).ok();
}

// The cells from `begin` on that one process runs; none where that one is not to be run.
std::vector<MatrixCell> cells_of_process(const std::vector<MatrixCell>& cells, size_t begin,
                                         const ResultsFile& known,
                                         const MatrixRunOptions& options) {
  std::vector<MatrixCell> own;
  for (size_t i = begin; i < cells.size() && own.size() < options.cells_per_process; ++i) {
    if (!is_to_run(cells[i], known) || !differ_in_drafters(cells[begin], cells[i])) break;
    own.push_back(cells[i]);
  }
  return own;
}

// A row of the list whose attention the start refuses, as a build or a GPU has not every family, is
// run with what serves instead.
Result<CellResult> or_stand_in(const MatrixCell& cell, const CellResult& result,
                               const MatrixRunOptions& options, ResultsFile& known) {
  const bool is_refused = result["verdict"] == "unsupported" && !result.value("refused", false);
  if (!is_refused || cell.row == 0 || cell.attention == "auto") return result;
  MatrixCell other = cell;
  other.attention = "auto";
  other.stands_in_for = cell.attention;
  if (!check_cell(other).ok()) return result;
  if (const CellResult* found = known.find(other)) return *found;
  FT_ASSIGN_OR_RETURN(const std::vector<CellResult> ended, run_in_processes({other}, options));
  CellResult own = ended.front();
  if (own["verdict"] == "unsupported") return result;
  own["stands_in_because"] = result["reason"];
  FT_RETURN_IF_ERROR(known.add(other, own));
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
                                          const MatrixRunOptions& options, ResultsFile& known,
                                          const std::function<void(const CellResult&)>& progress) {
  std::vector<CellResult> results;
  while (results.size() < cells.size()) {
    if (options.cancel != nullptr && options.cancel->load()) return aborted("interrupted");
    const size_t begin = results.size();
    const std::vector<MatrixCell> own = cells_of_process(cells, begin, known, options);
    FT_ASSIGN_OR_RETURN(const std::vector<CellResult> ended, run_in_processes(own, options));
    for (const CellResult& result : ended) {
      FT_RETURN_IF_ERROR(known.add(cells[results.size()], result));
      results.push_back(result);
    }
    if (own.empty()) {
      const CellResult* found = known.find(cells[begin]);
      const CellResult said = decided(cells[begin]);
      results.push_back(said["verdict"] == "not run" && found != nullptr ? *found : said);
    }
    for (size_t i = begin; i < results.size(); ++i) {
      FT_ASSIGN_OR_RETURN(results[i], or_stand_in(cells[i], results[i], options, known));
      progress(results[i]);
    }
  }
  return results;
}

}  // namespace foretoken
