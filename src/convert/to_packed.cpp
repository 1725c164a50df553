#include "convert/to_packed.h"

#include <array>
#include <vector>

#include "convert/quantized_folder.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Weights of bfloat16 have scales of it, as compressed-tensors writes them; others halves.
IntForm form_of(IntForm form, const TensorView& view) {
  form.bf16_scale = view.dtype == FileDType::kBF16;
  return form;
}

// Rows that words of zeros hold, the last of them not full.
int64_t zero_words(const IntForm& form, int64_t rows) {
  return (rows + form.per_word() - 1) / form.per_word();
}

Json packed_config(const IntForm& form) {
  const Json weights = {{"num_bits", form.bits},        {"type", "int"},
                        {"strategy", "group"},          {"group_size", form.group},
                        {"symmetric", !form.has_zeros}, {"dynamic", false},
                        {"observer", "minmax"},         {"actorder", nullptr}};
  return compressed_tensors_config("pack-quantized", weights, nullptr);
}

Result<std::vector<NewTensor>> plan_packed(const std::string& base, const IntForm& form,
                                           const TensorView& view) {
  const int64_t n = view.shape[0], k = view.shape[1];
  if (k % form.group != 0) {
    return unsupported(view.file + ": tensor '" + view.name + "' has shape " + view.shape_text() +
                       ", but columns must be whole groups of " + std::to_string(form.group) +
                       "; choose a smaller --group-size, or --type fp8");
  }
  const int64_t words = k / form.per_word(), groups = k / form.group;
  const char* scale = form_of(form, view).bf16_scale ? "BF16" : "F16";
  std::vector<NewTensor> made = {{base + ".weight_packed", "I32", {n, words}, n * words * 4},
                                 {base + ".weight_scale", scale, {n, groups}, n * groups * 2},
                                 {base + ".weight_shape", "I64", {2}, 16}};
  if (form.has_zeros) {
    const int64_t lines = zero_words(form, n);
    made.push_back({base + ".weight_zero_point", "I32", {lines, groups}, lines * groups * 4});
  }
  return made;
}

// Codes of a row in words, from the lowest bits on.
std::vector<uint32_t> code_words(const IntMatrix& ints, const IntForm& form) {
  const int64_t pack = form.per_word(), words = ints.cols / pack;
  std::vector<uint32_t> packed(static_cast<size_t>(ints.rows * words));
  for (int64_t row = 0; row < ints.rows; ++row) {
    for (int64_t col = 0; col < ints.cols; ++col) {
      packed[static_cast<size_t>(row * words + col / pack)] |= ints.code(row, col)
                                                               << (col % pack * form.bits);
    }
  }
  return packed;
}

// Zeros of rows that follow one another in words.
std::vector<uint32_t> zeros_in_words(const IntMatrix& ints, const IntForm& form) {
  const int64_t pack = form.per_word();
  std::vector<uint32_t> packed(static_cast<size_t>(zero_words(form, ints.rows) * ints.groups));
  for (int64_t row = 0; row < ints.rows; ++row) {
    for (int64_t g = 0; g < ints.groups; ++g) {
      packed[static_cast<size_t>(row / pack * ints.groups + g)] |= ints.zero(row, g)
                                                                   << (row % pack * form.bits);
    }
  }
  return packed;
}

Status write_packed(const IntForm& form, const TensorView& view, const FolderForm::Append& append) {
  FT_ASSIGN_OR_RETURN(const IntMatrix ints, round_to_ints(TensorRows(view), form_of(form, view)));
  const std::vector<uint32_t> codes = code_words(ints, form);
  FT_RETURN_IF_ERROR(append(codes.data(), std::ssize(codes) * 4));
  FT_RETURN_IF_ERROR(append(ints.scales.data(), std::ssize(ints.scales) * 2));
  const std::array<int64_t, 2> shape = {ints.rows, ints.cols};
  FT_RETURN_IF_ERROR(append(shape.data(), sizeof shape));
  if (!form.has_zeros) return {};
  const std::vector<uint32_t> zeros = zeros_in_words(ints, form);
  return append(zeros.data(), std::ssize(zeros) * 4);
}

}  // namespace

Result<int64_t> to_packed(const ModelFiles& model, const IntForm& form,
                          const ConvertOptions& options) {
  FolderForm folder;
  folder.quantization = packed_config(form);
  folder.plan = [&](const std::string& base, const ModelTensor&, const TensorView& view) {
    return plan_packed(base, form, view);
  };
  folder.write = [&](const ModelTensor&, const TensorView& view, const FolderForm::Append& append) {
    return write_packed(form, view, append);
  };
  return write_quantized_folder(model, folder, options);
}

}  // namespace foretoken
