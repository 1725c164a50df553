#include "convert/to_awq.h"

#include <vector>

#include "convert/awq_matrix.h"
#include "convert/quantized_folder.h"

namespace foretoken {
namespace {

Result<std::vector<NewTensor>> plan_awq(const std::string& base, int64_t group,
                                        const TensorView& view) {
  const int64_t n = view.shape[0], k = view.shape[1];
  if (k % group != 0 || n % kAwqPack != 0) {
    return unsupported(view.file + ": tensor '" + view.name + "' has shape " + view.shape_text() +
                       ", but columns must be whole groups of " + std::to_string(group) +
                       " and rows a multiple of " + std::to_string(kAwqPack) +
                       "; choose a smaller --group-size, or --type fp8");
  }
  const int64_t groups = k / group, words = n / kAwqPack;
  return std::vector<NewTensor>{{base + ".qweight", "I32", {k, words}, k * words * 4},
                                {base + ".qzeros", "I32", {groups, words}, groups * words * 4},
                                {base + ".scales", "F16", {groups, n}, groups * n * 2}};
}

Status write_awq(int64_t group, const TensorView& view, const FolderForm::Append& append) {
  FT_ASSIGN_OR_RETURN(const AwqMatrix matrix, quantize_awq(TensorRows(view), group));
  FT_RETURN_IF_ERROR(append(matrix.codes.data(), std::ssize(matrix.codes) * 4));
  FT_RETURN_IF_ERROR(append(matrix.zeros.data(), std::ssize(matrix.zeros) * 4));
  return append(matrix.scales.data(), std::ssize(matrix.scales) * 2);
}

}  // namespace

Result<int64_t> to_awq(const ModelFiles& model, int64_t group, const ConvertOptions& options) {
  FolderForm form;
  form.quantization = {{"quant_method", "awq"},
                       {"bits", 4},
                       {"group_size", group},
                       {"zero_point", true},
                       {"version", "gemm"}};
  form.plain_modules = "modules_to_not_convert";
  form.has_patterns = false;
  form.plan = [&](const std::string& base, const ModelTensor&, const TensorView& view) {
    return plan_awq(base, group, view);
  };
  form.write = [&](const ModelTensor&, const TensorView& view, const FolderForm::Append& append) {
    return write_awq(group, view, append);
  };
  return write_quantized_folder(model, form, options);
}

}  // namespace foretoken
