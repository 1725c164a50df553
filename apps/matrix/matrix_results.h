#pragma once
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "apps/matrix/matrix_process.h"

namespace foretoken {

// The file of results: JSON lines, one a cell that was run, newest last. A line that was being
// written when the program ended is taken off when the file is opened again.
class ResultsFile {
 public:
  // InvalidArgument for a file that holds anything else, or that cannot be written.
  static Result<ResultsFile> open(const std::string& path, const CellRunOptions& options);

  // The cell's result under these options; null where there is none.
  const CellResult* find(const MatrixCell& cell) const;
  // Keeps a result of run_in_processes. InvalidArgument where the file takes no more.
  Status add(const MatrixCell& cell, const CellResult& result);

 private:
  std::string path_;
  std::ofstream file_;
  std::map<std::string, CellResult> known_;
};

}  // namespace foretoken
