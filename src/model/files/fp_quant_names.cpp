#include "model/files/fp_quant_names.h"

#include <string_view>

namespace foretoken {
namespace {

using Tensors = std::map<std::string, const TensorView*>;

constexpr std::string_view kTurn = ".forward_hadamard_matrix";

Status broken(const TensorView& tensor, const std::string& base, const char* what) {
  return invalid_argument(tensor.file + ": the matrix '" + base + "' of FP-Quant lacks its " +
                          what + "; fetch the checkpoint again");
}

// Codes and scales are bytes, whatever type their file calls scales.
Status check_bytes(const TensorView& codes, const TensorView& scales) {
  for (const TensorView* tensor : {&codes, &scales}) {
    const std::string& type = tensor->dtype_name;
    const bool is_scale = tensor == &scales && (type == "F8_E4M3" || type == "F8_E8M0");
    if (type == "U8" || is_scale) continue;
    return unsupported(tensor->file + ": tensor '" + tensor->name + "' is " + type + " " +
                       tensor->shape_text() +
                       ", but codes and scales of FP-Quant are read as U8; fetch the checkpoint "
                       "again, or use the unquantised model");
  }
  return {};
}

}  // namespace

bool FpQuantMatrix::is_nvfp4() const {
  return codes->shape.size() == 2 && scales->shape.size() == 2 &&
         codes->shape[1] * 2 == scales->shape[1] * 16;
}

bool is_fp_quant_range(const std::string& name) {
  return name.ends_with(".act_global_scale") || name.ends_with(".backward_hadamard_matrix");
}

Result<std::vector<FpQuantMatrix>> find_fp_quant(const Tensors& tensors) {
  std::vector<FpQuantMatrix> all;
  for (const auto& [name, turn] : tensors) {
    if (!name.ends_with(kTurn)) continue;
    const std::string base = name.substr(0, name.size() - kTurn.size());
    FpQuantMatrix& matrix = all.emplace_back();
    matrix.name = base + ".weight";
    matrix.names.push_back(name);
    matrix.turn = turn;
    // What a module has no use for is empty.
    const auto take = [&](const char* ending) -> const TensorView* {
      const auto other = tensors.find(base + ending);
      if (other == tensors.end()) return nullptr;
      matrix.names.push_back(other->first);
      return other->second->num_elements() > 0 ? other->second : nullptr;
    };
    matrix.codes = take(".qweight");
    matrix.scales = take(".scales");
    matrix.factor = take(".weight_global_scale");
    const TensorView* plain = take(".dqweight");
    const TensorView* before = take(".weight");
    if (matrix.codes != nullptr && matrix.scales == nullptr) {
      return broken(*turn, base, "scales");
    }
    if (matrix.codes != nullptr) {
      FT_RETURN_IF_ERROR(check_bytes(*matrix.codes, *matrix.scales));
      continue;
    }
    if (plain == nullptr && before != nullptr) {
      return unsupported(turn->file + ": the matrix '" + base +
                         "' is stored as it was before FP-Quant (store_master_weights), which "
                         "rounds it while it runs; save it without, or use the unquantised model");
    }
    if (plain == nullptr) return broken(*turn, base, "codes (qweight or dqweight)");
    matrix.codes = plain;
    matrix.scales = matrix.factor = nullptr;
  }
  return all;
}

}  // namespace foretoken
