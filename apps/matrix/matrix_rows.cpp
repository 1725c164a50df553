#include "apps/matrix/matrix_rows.h"

#include <algorithm>
#include <array>
#include <bit>

#include "apps/matrix/matrix_models.h"
#include "attention/backend.h"
#include "base/check.h"
#include "base/comma_list.h"
#include "base/files/yaml_list.h"
#include "compat/kv_format.h"
#include "draft/registry.h"
#include "engine/support/support_rows.h"

namespace foretoken {
namespace {

struct MatrixLayout {
  int tp = 1;
  int pp = 1;
  int dp = 1;
  int dcp = 1;
  bool ep = false;
  bool dbo = false;
};

constexpr MatrixLayout kLayouts[] = {{},
                                     {.tp = 2},
                                     {.pp = 2},
                                     {.dp = 2},
                                     {.tp = 2, .pp = 2},
                                     {.tp = 2, .dp = 2},
                                     {.tp = 2, .ep = true},
                                     {.dp = 2, .ep = true},
                                     {.tp = 2, .dcp = 2},
                                     {.tp = 2, .dbo = true},
                                     {.dp = 2, .ep = true, .dbo = true}};
constexpr const char* kGraphModes[] = {"FULL_AND_PIECEWISE", "FULL", "FULL_DECODE_ONLY",
                                       "PIECEWISE", "NONE"};
constexpr const char* kQuantizations[] = {"", "fp8"};

constexpr size_t kParts = 7;
using Parts = std::array<std::string, kParts>;

Parts parts_of(const MatrixCell& cell) {
  return {cell.architecture,   cell.drafter,      cell.attention,   cell.graph_mode,
          cell.kv_cache_dtype, cell.quantization, layout_name(cell)};
}

// Pairs of two values of different parts, as numbers: values have numbers in the order in which
// they are met.
class PairTable {
 public:
  static constexpr int kMaxValues = 256;

  std::vector<int> pairs_of(const MatrixCell& cell) {
    std::array<int, kParts> values;
    const Parts parts = parts_of(cell);
    for (size_t i = 0; i < kParts; ++i) values[i] = value(std::to_string(i) + parts[i]);
    std::vector<int> pairs;
    for (size_t a = 0; a < kParts; ++a) {
      for (size_t b = a + 1; b < kParts; ++b) pairs.push_back(values[a] * kMaxValues + values[b]);
    }
    return pairs;
  }

 private:
  int value(const std::string& text) {
    const auto found = std::find(values_.begin(), values_.end(), text);
    if (found != values_.end()) return static_cast<int>(found - values_.begin());
    FT_CHECK(values_.size() < kMaxValues);
    values_.push_back(text);
    return static_cast<int>(values_.size()) - 1;
  }
  std::vector<std::string> values_;
};

std::vector<std::string> drafter_names() {
  std::vector<std::string> names = {""};
  for (const DrafterEntry& entry : drafters()) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> attention_names() {
  std::vector<std::string> names;
  for (const AttentionBackend* backend : attention_backends()) {
    names.emplace_back(backend->traits().name);
  }
  return names;
}

std::vector<std::string> kv_names() {
  std::vector<std::string> names = {"auto"};
  for (const NamedKvFormat& format : named_kv_formats()) names.emplace_back(format.name);
  return names;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const MatrixModel& model : matrix_models()) names.push_back(model.architecture);
  return names;
}

// That the value of a field is one of `known`.
Status check_name(const char* field, const std::string& value,
                  const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return {};
  return invalid_argument(std::string("cell: ") + field + " '" + value +
                          "' is unknown; use one of: " + comma_list(known));
}

// Names that a cell would otherwise be told to be unsupported for, though they are misspelt.
Status check_names(const MatrixCell& cell) {
  if (find_matrix_model(cell.architecture) == nullptr) {
    return invalid_argument(
        "cell: architecture '" + cell.architecture +
        "' has no synthetic checkpoint; use one of: " + comma_list(model_names()));
  }
  FT_RETURN_IF_ERROR(check_name("drafter", cell.drafter, drafter_names()));
  FT_RETURN_IF_ERROR(check_name("kv_cache_dtype", cell.kv_cache_dtype, kv_names()));
  return check_name("cudagraph_mode", cell.graph_mode,
                    {std::begin(kGraphModes), std::end(kGraphModes)});
}

// Cells that differ from `base` in all but model and attention; neighbours in their drafters alone.
void add_forms(const MatrixCell& base, std::vector<MatrixCell>& cells) {
  const std::vector<std::string> drafters = drafter_names();
  for (const char* graph_mode : kGraphModes) {
    for (const std::string& kv : kv_names()) {
      for (const char* quantization : kQuantizations) {
        for (const MatrixLayout& layout : kLayouts) {
          MatrixCell cell = base;
          cell.graph_mode = graph_mode;
          cell.kv_cache_dtype = kv;
          cell.quantization = quantization;
          cell.tp = layout.tp;
          cell.pp = layout.pp;
          cell.dp = layout.dp;
          cell.dcp = layout.dcp;
          cell.ep = layout.ep;
          cell.dbo = layout.dbo;
          for (const std::string& drafter : drafters) {
            cell.drafter = drafter;
            cells.push_back(cell);
          }
        }
      }
    }
  }
}

// An entry for each of its graph modes.
std::vector<nlohmann::ordered_json> entries_by_mode(const nlohmann::ordered_json& entry) {
  const char* name = "cudagraph_mode";
  if (!entry.is_object() || !entry.contains(name) || !entry[name].is_array() ||
      entry[name].empty()) {
    return {entry};
  }
  std::vector<nlohmann::ordered_json> entries;
  for (const nlohmann::ordered_json& mode : entry[name]) {
    entries.push_back(entry);
    entries.back()[name] = mode;
  }
  return entries;
}

// A row on few ranks, as many as divide its heads, and with what its device chooses where that has
// not the attention it names.
void fit_row(MatrixCell& cell, int max_ranks) {
  const auto most = static_cast<int>(std::bit_floor(static_cast<unsigned>(max_ranks)));
  if (cell.tp > max_ranks) cell.tp = most;
  if (cell.dp > max_ranks) cell.dp = most;
  cell.dcp = std::min(cell.dcp, cell.tp);
  if (check_cell(cell).ok()) return;
  MatrixCell other = cell;
  other.attention = "auto";
  other.stands_in_for = cell.attention;
  if (check_cell(other).ok()) cell = other;
}

}  // namespace

Result<std::vector<MatrixCell>> read_cells(const std::string& text, const std::string& what,
                                           const MatrixPlace& place) {
  FT_ASSIGN_OR_RETURN(const nlohmann::ordered_json list, parse_yaml_list(text, what));
  if (!list.is_array() || list.empty()) {
    return invalid_argument(what + ": must be a list of cells, one at least");
  }
  std::vector<MatrixCell> cells;
  for (size_t i = 0; i < list.size(); ++i) {
    for (const nlohmann::ordered_json& entry : entries_by_mode(list[i])) {
      Result<MatrixCell> cell = read_cell(entry, place.device);
      const Status known = cell.ok() ? check_names(cell.value()) : cell.status();
      if (!known.ok()) {
        return invalid_argument(what + ", entry " + std::to_string(i + 1) + ": " + known.message());
      }
      cells.push_back(std::move(cell).value());
      if (cells.back().row > 0) fit_row(cells.back(), place.max_ranks);
    }
  }
  return cells;
}

std::vector<MatrixCell> row_cells(const MatrixPlace& place) {
  Result<std::vector<MatrixCell>> cells =
      read_cells(support_rows_text(), "support_rows.yaml", place);
  FT_CHECK(cells.ok());
  return std::move(cells).value();
}

std::vector<MatrixCell> product_cells(const std::string& device) {
  std::vector<MatrixCell> cells;
  for (const MatrixModel& model : matrix_models()) {
    for (const std::string& attention : attention_names()) {
      MatrixCell base;
      base.architecture = model.architecture;
      base.attention = attention;
      base.device = device;
      add_forms(base, cells);
    }
  }
  return cells;
}

std::vector<MatrixCell> pairwise_sample(const std::vector<MatrixCell>& cells, size_t most) {
  PairTable table;
  std::vector<std::vector<int>> pairs;
  std::vector<bool> open(size_t{PairTable::kMaxValues} * PairTable::kMaxValues);
  for (const MatrixCell& cell : cells) {
    pairs.push_back(table.pairs_of(cell));
    for (const int pair : pairs.back()) open[static_cast<size_t>(pair)] = true;
  }
  const auto is_open = [&](int pair) { return open[static_cast<size_t>(pair)]; };
  std::vector<MatrixCell> sample;
  while (sample.size() < most) {
    size_t best = 0;
    int64_t best_count = 0;
    for (size_t i = 0; i < cells.size(); ++i) {
      const int64_t count = std::count_if(pairs[i].begin(), pairs[i].end(), is_open);
      if (count > best_count) {
        best = i;
        best_count = count;
      }
    }
    if (best_count == 0) break;
    for (const int pair : pairs[best]) open[static_cast<size_t>(pair)] = false;
    sample.push_back(cells[best]);
  }
  return sample;
}

Result<std::vector<MatrixCell>> cells_named(const std::vector<MatrixCell>& cells,
                                            const std::vector<std::string>& parts) {
  if (parts.empty()) return cells;
  std::vector<bool> is_named(cells.size());
  for (const std::string& part : parts) {
    bool is_known = false;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (("/" + cell_id(cells[i]) + "/").find("/" + part + "/") == std::string::npos) continue;
      is_named[i] = is_known = true;
    }
    if (is_known) continue;
    const std::string example = cells.empty() ? "" : ", as " + cell_id(cells.front());
    return invalid_argument("--only '" + part +
                            "': no cell has that between the slashes of its name" + example +
                            "; name a row, a drafter or another part of one");
  }
  std::vector<MatrixCell> named;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (is_named[i]) named.push_back(cells[i]);
  }
  return named;
}

std::vector<MatrixCell> part_of(const std::vector<MatrixCell>& cells, int part, int parts) {
  std::vector<MatrixCell> own;
  int group = -1;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i == 0 || !differ_in_drafters(cells[i - 1], cells[i])) ++group;
    if (group % parts == part - 1) own.push_back(cells[i]);
  }
  return own;
}

}  // namespace foretoken
