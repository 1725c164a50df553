#include "apps/matrix/matrix_cell.h"

#include <algorithm>

#include "apps/matrix/matrix_engine.h"
#include "apps/matrix/matrix_models.h"
#include "attention/flex_choice.h"
#include "engine/start/start_check.h"
#include "engine/support/row_fields.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string layout_name(const MatrixCell& cell) {
  std::string text;
  const auto add = [&](const char* letters, int size) {
    if (size > 1) text += (text.empty() ? "" : " ") + (letters + std::to_string(size));
  };
  add("TP", cell.tp);
  add("PP", cell.pp);
  add("DP", cell.dp);
  add("DCP", cell.dcp);
  if (cell.ep) text += text.empty() ? "EP" : " EP";
  if (cell.dbo) text += text.empty() ? "DBO" : " DBO";
  return text.empty() ? "one rank" : text;
}

std::string attention_name(const MatrixCell& cell) {
  return cell.attention + (cell.stands_in_for.empty() ? "" : " for " + cell.stands_in_for);
}

bool is_on_reference(const MatrixCell& cell) { return cell.device == kReferenceDevice; }

bool is_batch_invariant(const MatrixCell& cell) {
  const AttentionBackend* backend = named_attention(read_attention_choice(cell.attention).backend);
  return backend == nullptr || backend->traits().batch_invariant;
}

std::string cell_id(const MatrixCell& cell) {
  std::string id = cell.row > 0 ? "row" + std::to_string(cell.row) + "/" : "";
  id += cell.device + "/" + cell.architecture + "/" +
        (cell.drafter.empty() ? "none" : cell.drafter) + "/" + attention_name(cell) + "/" +
        cell.graph_mode + "/" + cell.kv_cache_dtype + "/" +
        (cell.quantization.empty() ? "unquantised" : cell.quantization) + "/" + layout_name(cell);
  std::replace(id.begin(), id.end(), ' ', '-');
  return id;
}

Json cell_json(const MatrixCell& cell) {
  return {{"row", cell.row},
          {"architecture", cell.architecture},
          {"drafter", cell.drafter},
          {"attention_backend", cell.attention},
          {"stands_in_for", cell.stands_in_for},
          {"cudagraph_mode", cell.graph_mode},
          {"kv_cache_dtype", cell.kv_cache_dtype},
          {"quantization", cell.quantization},
          {"device", cell.device},
          {"hardware", cell.hardware},
          {"tensor_parallel_size", cell.tp},
          {"pipeline_parallel_size", cell.pp},
          {"data_parallel_size", cell.dp},
          {"decode_context_parallel_size", cell.dcp},
          {"enable_expert_parallel", cell.ep},
          {"enable_dbo", cell.dbo}};
}

bool differ_in_drafters(const MatrixCell& a, const MatrixCell& b) {
  MatrixCell other = b;
  other.row = a.row;
  other.drafter = a.drafter;
  return cell_json(a) == cell_json(other);
}

Result<MatrixCell> read_cell(const Json& json, const std::string& device) {
  MatrixCell cell;
  cell.device = device;
  const RowField fields[] = {{"row", &cell.row, 0},
                             {"architecture", &cell.architecture},
                             {"drafter", &cell.drafter},
                             {"attention_backend", &cell.attention},
                             {"stands_in_for", &cell.stands_in_for},
                             {"cudagraph_mode", &cell.graph_mode},
                             {"kv_cache_dtype", &cell.kv_cache_dtype},
                             {"quantization", &cell.quantization},
                             {"device", &cell.device},
                             {"hardware", &cell.hardware},
                             {"tensor_parallel_size", &cell.tp},
                             {"pipeline_parallel_size", &cell.pp},
                             {"data_parallel_size", &cell.dp},
                             {"decode_context_parallel_size", &cell.dcp},
                             {"enable_expert_parallel", &cell.ep},
                             {"enable_dbo", &cell.dbo}};
  FT_RETURN_IF_ERROR(read_row_fields(json, "cell", fields));
  // As tables have it.
  for (std::string* name : {&cell.drafter, &cell.quantization}) {
    if (*name == "none") name->clear();
  }
  if (find_device_type(cell.device) == nullptr) {
    return invalid_argument("cell: 'device' must be " + device_names() + ", not '" + cell.device +
                            "'");
  }
  return cell;
}

Status check_cell(const MatrixCell& cell) {
  const MatrixModel* model = find_matrix_model(cell.architecture);
  Combination known = {.dtype = DType::kBF16,
                       .latent = model != nullptr && model->latent,
                       .num_experts = model == nullptr ? 0 : model->num_experts};
  if (model != nullptr) known.model = model->attention;
  return check_start(with_drafts(config_of(cell, {}, 1), cell, {}), known);
}

}  // namespace foretoken
