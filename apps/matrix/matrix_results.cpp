#include "apps/matrix/matrix_results.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <span>
#include <string_view>

#include "base/files/json_object.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

// What reports read of a result, beside its cell.
constexpr const char* kTexts[] = {"reason", "attention", "command", "stands_in_because"};
constexpr const char* kNumbers[] = {"num_prompts",
                                    "acceptance",
                                    "num_accepted_tokens",
                                    "num_draft_tokens",
                                    "texts_unlike_without_drafts",
                                    "score_gap_to_reference",
                                    "score_gap_to_portable",
                                    "resident_bytes",
                                    "grown_bytes",
                                    "seconds"};
// That evidence without a reason is made of.
constexpr const char* kNeeded[] = {"grown_bytes"};
constexpr const char* kNeededOfDrafts[] = {"num_accepted_tokens", "num_draft_tokens"};
constexpr const char* kVerdicts[] = {"green", "red", "unsupported"};

bool has_all(const Json& result, std::span<const char* const> names) {
  return std::all_of(names.begin(), names.end(),
                     [&](const char* name) { return result.contains(name); });
}

bool is_result(const Json& result) {
  if (!result.is_object() || !result.contains("verdict") || !result["verdict"].is_string()) {
    return false;
  }
  const std::string verdict = result["verdict"];
  if (std::count(std::begin(kVerdicts), std::end(kVerdicts), verdict) == 0) return false;
  for (const char* name : kTexts) {
    if (result.contains(name) && !result[name].is_string()) return false;
  }
  for (const char* name : kNumbers) {
    if (result.contains(name) && !result[name].is_number()) return false;
  }
  if (result.contains("reason")) return true;
  if (result.contains("acceptance") && !has_all(result, kNeededOfDrafts)) return false;
  return verdict == "green" && has_all(result, kNeeded);
}

// Without the line that was being written when the last run ended.
Result<std::string> whole_lines(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::string();
  if (!std::filesystem::is_regular_file(path, error)) {
    return invalid_argument(path + " is no file of results; name another --results file");
  }
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t end = text.rfind('\n') + 1;  // 0 without one
  if (end == text.size()) return text;
  text.resize(end);
  std::filesystem::resize_file(path, end, error);
  if (error) return invalid_argument("cannot write " + path + ": " + error.message());
  return text;
}

}  // namespace

Result<ResultsFile> ResultsFile::open(const std::string& path, const CellRunOptions& options) {
  FT_ASSIGN_OR_RETURN(const std::string text, whole_lines(path));
  ResultsFile results;
  results.path_ = path;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    Json result = parsed_ordered_json(std::string_view(text).substr(begin, end - begin));
    ++number;
    begin = end + 1;
    const Result<MatrixCell> cell =
        is_result(result) ? read_cell(result.value("cell", Json())) : invalid_argument("no result");
    if (!cell.ok()) {
      return invalid_argument(path + ", line " + std::to_string(number) +
                              " is no result of foretoken matrix; name another --results file");
    }
    if (result.value("asked", Json()) != asked_json(options)) continue;
    // A driver, a plug-in or a family may be there by now, and what is refused ends at once.
    if (result["verdict"] == "unsupported") continue;
    results.known_[cell_id(cell.value())] = std::move(result);
  }
  results.file_.open(path, std::ios::app);
  if (!results.file_) return invalid_argument("cannot write " + path);
  return results;
}

const CellResult* ResultsFile::find(const MatrixCell& cell) const {
  const auto found = known_.find(cell_id(cell));
  return found == known_.end() ? nullptr : &found->second;
}

Status ResultsFile::add(const MatrixCell& cell, const CellResult& result) {
  known_[cell_id(cell)] = result;
  file_ << result.dump() << std::endl;
  return file_ ? Status() : invalid_argument("cannot write " + path_);
}

}  // namespace foretoken
