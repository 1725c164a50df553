#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/files/text_file.h"
#include "model/files/checkpoint.h"
#include "model/files/gemma_names.h"

// Matrices and tables of Google's quantised Gemma checkpoints.

namespace foretoken {
namespace {

using OrderedJson = nlohmann::ordered_json;

// In the order that the file has, in which patterns are tried.
Result<OrderedJson> ordered_quantization(const std::string& path) {
  FT_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  const OrderedJson config = OrderedJson::parse(text, nullptr, false);
  const OrderedJson none = OrderedJson::object();
  if (!config.is_object()) {
    return invalid_argument(path + " is no JSON object as its standard has it (without NaN and " +
                            "Infinity); fetch the config.json of the model");
  }
  const OrderedJson inner = config.value("text_config", none);
  const OrderedJson& outer =
      config.contains("quantization_config") || !inner.is_object() ? config : inner;
  const auto found = outer.find("quantization_config");
  return found != outer.end() && found->is_object() ? *found : none;
}

// The bytes of codes as words of 32 bits, whose codes follow one another as compressed-tensors' do.
Result<TensorView> words_of_codes(const GemmaMatrix& matrix) {
  TensorView words = *matrix.codes;
  if (words.dtype_name != "U8" || words.shape.size() != 2 || words.shape[1] % 4 != 0) {
    return unsupported(words.file + ": tensor '" + words.name + "' is " + words.dtype_name + " " +
                       words.shape_text() + ", but codes of " + std::to_string(matrix.bits) +
                       " bits are read as U8 in rows of a multiple of four bytes; use the "
                       "unquantised model");
  }
  words.dtype_name = "I32";
  words.dtype = FileDType::kOther;
  words.shape[1] /= 4;
  return words;
}

// Columns that share a scale; -1: all of a row.
int64_t group_of(const GemmaMatrix& matrix) {
  const std::vector<int64_t>& scales = matrix.scales->shape;
  if (scales.size() != 2 || scales[1] <= 1) return -1;
  return matrix.codes->shape[1] * 8 / matrix.bits / scales[1];
}

}  // namespace

Status Checkpoint::add_gemma() {
  if (!has_gemma(tensors_)) return {};
  const auto quantization = read_own_quantization();
  // Whoever else reads such bytes says what is wrong.
  if (!quantization.ok() || quantization.value().method != "gemma") return {};
  FT_ASSIGN_OR_RETURN(const OrderedJson said, ordered_quantization(config_path()));
  FT_ASSIGN_OR_RETURN(const auto found, find_gemma(tensors_, said, config_path()));
  std::erase_if(tensors_, [](const auto& entry) { return is_gemma_range(entry.first); });
  rounds_activations_ = true;
  for (const GemmaMatrix& matrix : found) {
    auto view = std::make_unique<TensorView>();
    view->name = matrix.name;
    view->file = matrix.codes->file;
    view->dtype = FileDType::kOther;
    view->num_bytes = matrix.codes->num_bytes + matrix.scales->num_bytes;
    FT_RETURN_IF_ERROR(matrix.bits == 8 ? take_gemma_bytes(matrix, view.get())
                                        : take_gemma_words(matrix, view.get()));
    FT_RETURN_IF_ERROR(add_matrix(std::move(view), matrix.names));
  }
  return {};
}

Status Checkpoint::take_gemma_words(const GemmaMatrix& matrix, TensorView* view) {
  FT_ASSIGN_OR_RETURN(TensorView words, words_of_codes(matrix));
  made_tensors_.push_back(std::make_unique<TensorView>(std::move(words)));
  Quantization layout;
  layout.layout = PackLayout::kCompressed;
  layout.bits = matrix.bits;
  layout.group = group_of(matrix);
  PackedParts parts;
  parts.codes = made_tensors_.back().get();
  parts.scales = matrix.scales;
  FT_ASSIGN_OR_RETURN(PackedTensor packed, PackedTensor::create(layout, parts));
  packed_.push_back(std::make_unique<PackedTensor>(std::move(packed)));
  view->dtype_name = std::to_string(matrix.bits) + " bits";
  view->shape = {packed_.back()->rows(), packed_.back()->cols()};
  view->packed = packed_.back().get();
  return {};
}

Status Checkpoint::take_gemma_bytes(const GemmaMatrix& matrix, TensorView* view) {
  if (matrix.codes->dtype_name != "I8") {
    return unsupported(matrix.codes->file + ": tensor '" + matrix.codes->name + "' is " +
                       matrix.codes->dtype_name + " " + matrix.codes->shape_text() +
                       ", but codes of 8 bits are read as I8; fetch the config.json of the model");
  }
  ScaledParts parts;
  parts.type = CodeType::kInt8;
  parts.codes = matrix.codes;
  parts.scales = matrix.scales;
  FT_ASSIGN_OR_RETURN(ScaledTensor scaled, ScaledTensor::create(Quantization{}, parts));
  scaled_.push_back(std::make_unique<ScaledTensor>(std::move(scaled)));
  view->dtype_name = scaled_.back()->type_name();
  view->shape = scaled_.back()->shape();
  view->scaled = scaled_.back().get();
  return {};
}

}  // namespace foretoken
