#include "engine/support/support_rows.h"

#include <utility>

#include "attention/backend.h"
#include "base/check.h"
#include "base/files/yaml_list.h"
#include "draft/registry.h"
#include "engine/start/start_check.h"
#include "engine/support/row_fields.h"
#include "model/config/architecture.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

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

// What an engine would be configured with; the attention brings its size of blocks.
EngineConfig config_of(const SupportRow& row) {
  EngineConfig config;
  config.device = row.device;
  config.attention_backend = row.attention == "auto" ? "" : row.attention;
  if (const AttentionBackend* backend = named_attention(row.attention)) {
    if (backend->traits().block_size > 0) config.block_size = backend->traits().block_size;
  }
  config.kv_cache_dtype = row.kv_cache_dtype;
  config.parallel.tensor_parallel_size = row.tp;
  config.parallel.data_parallel_size = row.dp;
  config.parallel.decode_context_parallel_size = row.context_ranks;
  config.parallel.enable_expert_parallel = row.experts;
  config.parallel.enable_dbo = row.two_lanes;
  // Lanes want graphs in one piece, which of several modes some have.
  if (row.graph_modes.size() == 1) config.cudagraph_mode = row.graph_modes.front();
  if (!row.drafter.empty()) config.speculative.emplace_back().method = row.drafter;
  return config;
}

}  // namespace

std::span<const SupportRow> support_rows() {
  static const std::vector<SupportRow> rows = own_support_rows();
  return rows;
}

Result<SupportRow> read_support_row(const Json& entry) {
  SupportRow row;
  const RowField fields[] = {{"row", &row.number},
                             {"architecture", &row.architecture},
                             {"hardware", &row.hardware},
                             {"drafter", &row.drafter},
                             {"attention_backend", &row.attention},
                             {"cudagraph_mode", &row.graph_modes},
                             {"kv_cache_dtype", &row.kv_cache_dtype},
                             {"tensor_parallel_size", &row.tp},
                             {"data_parallel_size", &row.dp},
                             {"decode_context_parallel_size", &row.context_ranks},
                             {"enable_expert_parallel", &row.experts},
                             {"enable_dbo", &row.two_lanes}};
  FT_RETURN_IF_ERROR(read_row_fields(entry, "row", fields));
  return row;
}

Status check_support_row(const SupportRow& row) {
  if (find_architecture(row.architecture) == nullptr) {
    return unsupported("architecture '" + row.architecture +
                       "' is not supported; foretoken inspect lists those that are");
  }
  return check_start(config_of(row), {.dtype = DType::kBF16});
}

}  // namespace foretoken
