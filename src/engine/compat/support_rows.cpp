#include "engine/compat/support_rows.h"

#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/yaml_list.h"
#include "engine/compat/compat.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

Status wrong_row_field(const std::string& name, const char* what) {
  return invalid_argument("row: '" + name + "' " + what);
}

bool is_list_of_texts(const Json& value) {
  if (!value.is_array() || value.empty()) return false;
  for (const Json& each : value) {
    if (!each.is_string()) return false;
  }
  return true;
}

Status read_row_field(const std::string& name, const Json& value, SupportRow& row) {
  const std::pair<std::string_view, std::string*> texts[] = {
      {"architecture", &row.architecture},
      {"hardware", &row.hardware},
      {"drafter", &row.drafter},
      {"attention_backend", &row.attention},
      {"kv_cache_dtype", &row.kv_cache_dtype}};
  for (const auto& [known, field] : texts) {
    if (name != known) continue;
    if (!value.is_string()) return wrong_row_field(name, "must be a text");
    *field = value.get<std::string>();
    return {};
  }
  const std::pair<std::string_view, int*> counts[] = {
      {"row", &row.number},
      {"tensor_parallel_size", &row.tp},
      {"data_parallel_size", &row.dp},
      {"decode_context_parallel_size", &row.context_ranks}};
  for (const auto& [known, field] : counts) {
    if (name != known) continue;
    if (!value.is_number_integer() || value.get<int64_t>() < 1 || value.get<int64_t>() > 1024) {
      return wrong_row_field(name, "must be a whole number of 1 to 1024");
    }
    *field = value.get<int>();
    return {};
  }
  const std::pair<std::string_view, bool*> flags[] = {{"enable_expert_parallel", &row.experts},
                                                      {"enable_dbo", &row.two_lanes}};
  for (const auto& [known, field] : flags) {
    if (name != known) continue;
    if (!value.is_boolean()) return wrong_row_field(name, "must be true or false");
    *field = value.get<bool>();
    return {};
  }
  if (name != "cudagraph_mode") return wrong_row_field(name, "is unknown");
  const Json modes = value.is_array() ? value : Json::array({value});
  if (!is_list_of_texts(modes)) return wrong_row_field(name, "must be a text or a list of texts");
  row.graph_modes = modes.get<std::vector<std::string>>();
  return {};
}

std::vector<SupportRow> own_support_rows() {
  const auto list = parse_yaml_list(support_rows_text(), "support_rows.yaml");
  FT_CHECK(list.ok());
  std::vector<SupportRow> rows;
  for (const Json& entry : list.value()) {
    Result<SupportRow> row = read_support_row(entry);
    FT_CHECK(row.ok());
    rows.push_back(std::move(row).value());
  }
  return rows;
}

}  // namespace

std::span<const SupportRow> support_rows() {
  static const std::vector<SupportRow> rows = own_support_rows();
  return rows;
}

Result<SupportRow> read_support_row(const Json& entry) {
  if (!entry.is_object()) return invalid_argument("a row is a mapping of names to values");
  SupportRow row;
  for (const auto& [name, value] : entry.items()) {
    FT_RETURN_IF_ERROR(read_row_field(name, value, row));
  }
  return row;
}

Status check_support_row(const SupportRow& row) {
  return compat({.device = find_device_type("cpu"),
                 .kv_cache_dtype = row.kv_cache_dtype,
                 .dtype = DType::kBF16,
                 .drafter = row.drafter,
                 .architecture = row.architecture,
                 .num_ranks = row.tp,
                 .num_engines = row.dp,
                 .num_context_ranks = row.context_ranks,
                 .expert_parallel = row.experts,
                 .two_lanes = row.two_lanes,
                 .only_pieces = row.graph_modes == std::vector<std::string>{"PIECEWISE"}});
}

}  // namespace foretoken
