#include "convert/to_gptq.h"

#include <vector>

#include "convert/quantized_folder.h"
#include "gguf/hf_names.h"
#include "model/config/config.h"

namespace foretoken {
namespace {

std::vector<NewTensor> gptq_tensors(const std::string& base, const GptqForm& form, int64_t n,
                                    int64_t k) {
  const int64_t pack = form.per_word(), groups = k / form.group;
  return {{base + ".qweight", "I32", {k / pack, n}, k / pack * n * 4},
          {base + ".qzeros", "I32", {groups, n / pack}, groups * (n / pack) * 4},
          {base + ".scales", "F16", {groups, n}, groups * n * 2},
          {base + ".g_idx", "I32", {k}, k * 4}};
}

Result<std::vector<NewTensor>> plan_gptq(const std::string& base, const GptqForm& form,
                                         const TensorView& view) {
  const int64_t n = view.shape[0], k = view.shape[1];
  if (k % form.group == 0 && n % form.per_word() == 0) return gptq_tensors(base, form, n, k);
  return unsupported(view.file + ": tensor '" + view.name + "' has shape " + view.shape_text() +
                     ", but columns must be whole groups of " + std::to_string(form.group) +
                     " and rows a multiple of " + std::to_string(form.per_word()) +
                     "; choose a smaller --group-size");
}

Status write_gptq(const GptqForm& form, const TensorView& view, const FolderForm::Append& append) {
  FT_ASSIGN_OR_RETURN(const GptqMatrix matrix, quantize_gptq(TensorRows(view), form));
  const auto add = [&](const auto& values) {
    return append(values.data(), std::ssize(values) * static_cast<int64_t>(sizeof(values[0])));
  };
  FT_RETURN_IF_ERROR(add(matrix.codes));
  FT_RETURN_IF_ERROR(add(matrix.zeros));
  FT_RETURN_IF_ERROR(add(matrix.scales));
  return add(matrix.groups);
}

}  // namespace

Result<int64_t> to_gptq(const ModelFiles& model, const GptqForm& form,
                        const ConvertOptions& options) {
  if (!model.is_gguf()) {
    FT_ASSIGN_OR_RETURN(const ModelConfig config, read_model_config(model, {}));
    if (gguf_architecture_for(config.architecture) == nullptr) {
      return unsupported(model.text() + ": models of the architecture " + config.architecture +
                         " are not converted; those that are: " + gguf_hf_classes());
    }
  }
  FolderForm folder;
  folder.quantization = {
      {"quant_method", "gptq"},     {"bits", form.bits}, {"group_size", form.group},
      {"desc_act", false},          {"sym", true},       {"lm_head", false},
      {"checkpoint_format", "gptq"}};
  folder.plain_modules.clear();
  folder.plan = [&](const std::string& base, const ModelTensor&, const TensorView& view) {
    return plan_gptq(base, form, view);
  };
  folder.write = [&](const ModelTensor&, const TensorView& view, const FolderForm::Append& append) {
    return write_gptq(form, view, append);
  };
  return write_quantized_folder(model, folder, options);
}

}  // namespace foretoken
