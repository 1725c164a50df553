#include "convert/to_fp8.h"

#include "convert/quantized_folder.h"
#include "convert/tensor_rows.h"
#include "model/files/forms/rounded_tensor.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// As vLLM reads it: weights by output, and x by row while it runs.
Json fp8_config() {
  const Json weights = {{"num_bits", 8},        {"type", "float"},  {"strategy", "channel"},
                        {"symmetric", true},    {"dynamic", false}, {"observer", "minmax"},
                        {"group_size", nullptr}};
  const Json inputs = {{"num_bits", 8},     {"type", "float"}, {"strategy", "token"},
                       {"symmetric", true}, {"dynamic", true}, {"group_size", nullptr}};
  return compressed_tensors_config("float-quantized", weights, inputs);
}

Result<std::vector<NewTensor>> plan_fp8(const std::string& base, const ModelTensor& tensor,
                                        const TensorView&) {
  const int64_t n = tensor.shape[0], k = tensor.shape[1];
  return std::vector<NewTensor>{{base + ".weight", "F8_E4M3", {n, k}, n * k},
                                {base + ".weight_scale", "F32", {n, 1}, n * 4}};
}

Status write_fp8(const ModelTensor& tensor, const TensorView& view,
                 const FolderForm::Append& append) {
  const int64_t n = tensor.shape[0], k = tensor.shape[1];
  FT_ASSIGN_OR_RETURN(const RoundedTensor rounded, RoundedTensor::create(view, Fp8Channels::kRows));
  std::vector<uint8_t> codes(static_cast<size_t>(n * k));
  std::vector<float> scales(static_cast<size_t>(n));
  FT_RETURN_IF_ERROR(for_slices(n, [&](int64_t first, int64_t count) {
    std::vector<std::byte> raw;
    return rounded.read_codes(first, count, codes.data() + first * k, scales.data() + first, raw);
  }));
  FT_RETURN_IF_ERROR(append(codes.data(), std::ssize(codes)));
  return append(scales.data(), std::ssize(scales) * 4);
}

}  // namespace

Result<int64_t> to_fp8(const ModelFiles& model, const ConvertOptions& options) {
  return write_quantized_folder(model, {fp8_config(), plan_fp8, write_fp8}, options);
}

}  // namespace foretoken
