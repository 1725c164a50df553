#pragma once
#include <string>
#include <vector>

#include "apps/matrix/matrix_runner.h"

namespace foretoken {

// What stands over a report.
struct MatrixFacts {
  std::string version;
  std::string device;
  std::string date;  // YYYY-MM-DD
  std::string size;
};

// The status of a result in words: "green at size", "green reduced", "red", "unsupported",
// "compiled, not run" or "not run". Rows of hardware that is not this device's are never green.
std::string status_words(const CellResult& result, const MatrixFacts& facts);

// A table of all results with their evidence, how many have each status, and the share of
// unsupported cells of the product with each sentence, where it was decided.
std::string matrix_markdown(const std::vector<CellResult>& results,
                            const std::vector<CellResult>& product, const MatrixFacts& facts);
// The same as a page that needs nothing else, with the command of each cell.
std::string matrix_page(const std::vector<CellResult>& results,
                        const std::vector<CellResult>& product, const MatrixFacts& facts);
// The same as one JSON object.
nlohmann::ordered_json matrix_json(const std::vector<CellResult>& results,
                                   const std::vector<CellResult>& product,
                                   const MatrixFacts& facts);

// What matrix_markdown said of the results, out of the text of such an object: of its facts, and of
// the cell, the status and the evidence of each, as they were judged then. InvalidArgument, which
// begins with `what` (a file), for anything else.
Result<std::string> reprinted_report(const std::string& text, const std::string& what);

}  // namespace foretoken
