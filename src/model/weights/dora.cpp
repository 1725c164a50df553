#include "model/weights/dora.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <string_view>
#include <thread>
#include <vector>

#include "base/bfloat16.h"
#include "model/config/peft_config.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "model/weights/module_key.h"

namespace foretoken {
namespace {

constexpr int64_t kMagnitudesAtOnce = 64;
constexpr unsigned kMaxMagnitudeReaders = 16;

using Matrices = std::map<std::string, const TensorView*>;  // by module_key

Matrices matrices_of(const Checkpoint& model) {
  constexpr std::string_view kEnding = ".weight";
  Matrices matrices;
  for (const auto& [name, tensor] : model.tensors()) {
    if (!name.ends_with(kEnding) || tensor->shape.size() != 2) continue;
    matrices.try_emplace(module_key(name.substr(0, name.size() - kEnding.size())), tensor);
  }
  return matrices;
}

std::vector<float> floats_of(const std::vector<std::byte>& values, DType dtype) {
  std::vector<float> out(values.size() / dtype_size(dtype));
  if (dtype == DType::kF32) {
    std::memcpy(out.data(), values.data(), values.size());
    return out;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, &values[i * sizeof bits], sizeof bits);
    out[i] = bf16_to_float(bits);
  }
  return out;
}

// The rows of a matrix with its adapter in it.
class AdaptedMatrix {
 public:
  AdaptedMatrix(const LoraLinear& linear, DType dtype)
      : linear_(linear), a_(floats_of(linear.a, dtype)), b_(floats_of(linear.b, dtype)) {}

  // Of row `row`, which is changed: the model's own. Its elements lie `stride` apart.
  double length(int64_t row, const float* own, int64_t stride) {
    const auto inputs = static_cast<size_t>(linear_.inputs);
    const auto rank = static_cast<size_t>(linear_.rank);
    values_.resize(inputs);
    for (size_t i = 0; i < inputs; ++i) values_[i] = own[i * static_cast<size_t>(stride)];
    for (size_t j = 0; j < rank; ++j) {
      const float weight = linear_.scale * b_[static_cast<size_t>(row) * rank + j];
      const float* a = a_.data() + j * inputs;
      for (size_t i = 0; i < inputs; ++i) values_[i] += weight * a[i];
    }
    double sum = 0;
    for (const float value : values_) sum += double{value} * value;
    return std::sqrt(sum);
  }

 private:
  const LoraLinear& linear_;
  const std::vector<float> a_;
  const std::vector<float> b_;
  std::vector<float> values_;
};

// `transposed`: the file has columns as rows, so that it takes all of it to have one.
Result<std::vector<double>> row_lengths(const TensorView& own, const LoraLinear& linear,
                                        DType dtype, bool transposed) {
  AdaptedMatrix matrix(linear, dtype);
  std::vector<double> lengths;
  std::vector<float> rows;
  std::vector<std::byte> raw;
  const int64_t at_once = transposed ? linear.outputs : kMagnitudesAtOnce;
  for (int64_t first = 0; first < linear.outputs; first += at_once) {
    const int64_t count = std::min(at_once, linear.outputs - first);
    rows.resize(static_cast<size_t>(count * linear.inputs));
    FT_RETURN_IF_ERROR(read_elements(own, first * linear.inputs, count * linear.inputs, DType::kF32,
                                     rows.data(), raw));
    for (int64_t row = 0; row < count; ++row) {
      const float* values = rows.data() + (transposed ? row : row * linear.inputs);
      lengths.push_back(matrix.length(first + row, values, transposed ? linear.outputs : 1));
    }
  }
  return lengths;
}

Status check_matrix(const LoraLinear& linear, const Matrices& matrices, bool transposed) {
  const std::string key = module_key(linear.module);
  const bool in_layer = !behind_number(key).empty();
  const auto own = matrices.find(key);
  if (!in_layer || own == matrices.end()) {
    return unsupported(
        "the adapter has magnitudes (DoRA) for '" + linear.module + "', " +
        (in_layer ? "which is no matrix of the model's files" : "which is no matrix of a layer") +
        "; " + kMergeAdapter);
  }
  std::vector<int64_t> wanted = {linear.outputs, linear.inputs};
  if (transposed) std::ranges::reverse(wanted);
  if (own->second->shape == wanted) return check_convertible(*own->second);
  return invalid_argument("the adapter of '" + linear.module + "' is for a matrix [" +
                          std::to_string(linear.outputs) + ", " + std::to_string(linear.inputs) +
                          "], but the model's is " + own->second->shape_text() + "; " +
                          kOtherModel);
}

Status read_factors(const TensorView& magnitudes, const TensorView& own, const LoraAdapter& adapter,
                    LoraLinear* linear) {
  if (magnitudes.num_elements() != linear->outputs) {
    return invalid_argument(magnitudes.file + ": tensor '" + magnitudes.name + "' has shape " +
                            magnitudes.shape_text() + ", but " + std::to_string(linear->outputs) +
                            " magnitudes are wanted; " + kSaveAdapter);
  }
  FT_RETURN_IF_ERROR(check_convertible(magnitudes));
  std::vector<float> factors(static_cast<size_t>(linear->outputs));
  std::vector<std::byte> raw;
  FT_RETURN_IF_ERROR(
      read_elements(magnitudes, 0, linear->outputs, DType::kF32, factors.data(), raw));
  FT_ASSIGN_OR_RETURN(const std::vector<double> lengths,
                      row_lengths(own, *linear, adapter.dtype, adapter.transposed));
  for (size_t row = 0; row < factors.size(); ++row) {
    factors[row] = static_cast<float>(factors[row] / lengths[row]);
    if (std::isfinite(factors[row])) continue;
    return invalid_argument(magnitudes.file + ": tensor '" + magnitudes.name +
                            "' has magnitudes that are infinite, or of a row that is all zeros; "
                            "take an earlier checkpoint");
  }
  linear->factors = std::move(factors);
  return {};
}

}  // namespace

Status read_magnitudes(const std::string& folder, const ModelFiles& model, LoraAdapter* adapter) {
  std::vector<LoraLinear*> linears;
  for (LoraLinear& linear : adapter->linears) {
    // What is no module of a decoder is the pool's to judge.
    if (linear.magnitude.empty() || module_key(linear.module).empty()) continue;
    linears.push_back(&linear);
  }
  if (linears.empty()) return {};
  FT_ASSIGN_OR_RETURN(const AdapterFile file, open_peft_weights(folder));
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(model));
  const Matrices matrices = matrices_of(checkpoint);
  for (const LoraLinear* linear : linears) {
    FT_RETURN_IF_ERROR(check_matrix(*linear, matrices, adapter->transposed));
  }
  std::vector<Status> statuses(linears.size());
  std::atomic<size_t> next = 0;
  const auto read = [&] {
    for (size_t i = next++; i < linears.size(); i = next++) {
      statuses[i] =
          read_factors(file.tensors().at(linears[i]->magnitude),
                       *matrices.at(module_key(linears[i]->module)), *adapter, linears[i]);
    }
  };
  {
    std::vector<std::jthread> readers;
    const unsigned most = std::clamp(std::thread::hardware_concurrency(), 1u, kMaxMagnitudeReaders);
    for (unsigned i = 1; i < most; ++i) readers.emplace_back(read);
    read();
  }
  for (const Status& status : statuses) FT_RETURN_IF_ERROR(status);
  return {};
}

}  // namespace foretoken
