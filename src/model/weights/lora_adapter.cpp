#include "model/weights/lora_adapter.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string_view>

#include "base/files/python_json.h"
#include "base/files/text_file.h"
#include "gguf/container/gguf_file.h"
#include "model/files/forms/convert.h"
#include "model/files/tensor_names.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

// The two matrices of a module, and the magnitudes that DoRA has beside them.
struct LoraPair {
  const TensorView* a = nullptr;
  const TensorView* b = nullptr;
  const TensorView* magnitude = nullptr;
};
using LoraPairs = std::map<std::string, LoraPair>;

// The ending of a tensor's name that says which matrix it is.
struct LoraEnding {
  const char* text;
  const TensorView* LoraPair::* place;
};
constexpr LoraEnding kLoraEndings[] = {{".lora_A.weight", &LoraPair::a},
                                       {".lora_B.weight", &LoraPair::b},
                                       {".lora_embedding_A", &LoraPair::a},
                                       {".lora_embedding_B", &LoraPair::b},
                                       {".lora_magnitude_vector", &LoraPair::magnitude},
                                       {".lora_magnitude_vector.weight", &LoraPair::magnitude}};

// PEFT's files leave out the name of the adapter that a model in memory has behind these, as
// `default`; those of its older releases and of other trainers have it.
std::string without_adapter_name(const std::string& tensor) {
  for (const std::string_view matrix : {".lora_A.", ".lora_B.", ".lora_embedding_A.",
                                        ".lora_embedding_B.", ".lora_magnitude_vector."}) {
    const size_t at = tensor.find(matrix);
    if (at == tensor.npos) continue;
    const std::string kept = tensor.substr(0, at + matrix.size() - 1);
    const std::string rest = tensor.substr(kept.size() + 1);
    if (rest.ends_with(".weight")) {
      const std::string name = rest.substr(0, rest.size() - std::strlen(".weight"));
      return name.find('.') == name.npos ? kept + ".weight" : tensor;
    }
    return rest == "weight" || rest.find('.') != rest.npos ? tensor : kept;
  }
  return tensor;
}

constexpr std::string_view kOriginal = "original_module.";
// MonteCLoRA's, whose model is a plain one once it is trained.
constexpr std::string_view kSampler = ".lora_monteclora_sampler.";
constexpr std::string_view kTokenRows = ".token_adapter.trainable_tokens_delta";
// The matrix that such rows stand in, which PEFT saves where the vocabulary has another size.
constexpr std::string_view kTokenBase = ".token_adapter.base_layer.weight";

constexpr const char* kIsMissing =
    " cannot be found; an adapter is a PEFT folder with adapter_config.json and "
    "adapter_model.safetensors or adapter_model.bin";

std::string why_not_applied(const std::string& name) {
  if (name.find(kOriginal) != std::string::npos) {
    return std::string(
               "it is the model's own beside a matrix that was trained, which is not there; ") +
           kSaveAdapter;
  }
  if (name.find("modules_to_save") != std::string::npos || name.ends_with(".weight")) {
    return std::string(
               "of whole modules (modules_to_save) the embedding and the output matrix alone are "
               "applied; ") +
           kMergeAdapter;
  }
  return std::string("it is no matrix of a LoRA adapter; take it out of the file, or ") +
         kSaveAdapter;
}

// Matrices that PEFT saves whole, some without being asked (save_embedding_layers).
bool is_base(const std::string& name) {
  return std::ranges::any_of(
      std::array{"embed_tokens.weight", "lm_head.weight", "wte.weight", "embed_in.weight",
                 "embed_out.weight", "word_embeddings.weight"},
      [&](const std::string& ending) { return name == ending || name.ends_with("." + ending); });
}

std::string module_of(const std::string& tensor) {
  return tensor.substr(0, tensor.rfind(".weight"));
}

// Whether it is the model's own matrix beside one that was trained, which PEFT saves along with it.
bool is_original(const AdapterFile& file, const std::string& name) {
  const size_t at = name.find(kOriginal);
  if (at == name.npos) return false;
  return std::ranges::any_of(
      std::array{"modules_to_save.", "modules_to_save.default.", ""}, [&](const char* trained) {
        return file.tensors().contains(std::string(name).replace(at, kOriginal.size(), trained));
      });
}

// Of a matrix that is there under several names, which hold the same, the first is kept.
void add_base(const std::string& name, const std::string& plain, std::vector<LoraBase>* bases) {
  const bool known =
      std::ranges::any_of(*bases, [&](const LoraBase& base) { return base.name == plain; });
  if (!known) bases->push_back({name, plain});
}

bool is_named(const std::string& module, const std::string& name) {
  return module == name || module.ends_with("." + name);
}

// An adapter that lacks a matrix that was trained is another model.
Status check_saved(const AdapterFile& file, const PeftConfig& config,
                   const std::vector<LoraBase>& bases) {
  for (const std::string& saved : config.saved_modules()) {
    const bool is_there = std::ranges::any_of(
        bases, [&](const LoraBase& base) { return is_named(module_of(base.name), saved); });
    if (is_there || (saved == "lm_head" && config.ties_head() && !bases.empty())) continue;
    return invalid_argument(file.path + ": it lacks the matrix of '" + saved +
                            "', which modules_to_save of adapter_config.json names; " +
                            kSaveAdapter);
  }
  return {};
}

// Whether it is a matrix beside the pairs, which is noted.
bool note_matrix(const std::string& name, LoraAdapter* adapter) {
  if (name.ends_with(kTokenRows)) {
    const std::string module = name.substr(0, name.size() - kTokenRows.size());
    adapter->tokens.push_back({name, plain_tensor_name(module), {}});
    return true;
  }
  const bool has_rows = name.ends_with(kTokenBase);
  const std::string plain = plain_tensor_name(
      has_rows ? name.substr(0, name.size() - kTokenBase.size()) + ".weight" : name);
  if (!is_base(plain)) return false;
  add_base(name, plain, &adapter->bases);
  return true;
}

Status find_token_ids(const AdapterFile& file, const PeftConfig& config, LoraAdapter* adapter) {
  if (config.trains_tokens() && adapter->tokens.empty()) {
    return invalid_argument(file.path +
                            ": it lacks the rows that trainable_token_indices of "
                            "adapter_config.json names; " +
                            kSaveAdapter);
  }
  for (LoraTokens& tokens : adapter->tokens) {
    const std::vector<int32_t>* ids = config.trained_tokens(tokens.module);
    if (ids == nullptr) {
      return invalid_argument(file.path + ": it holds rows of '" + tokens.module +
                              "', which trainable_token_indices of adapter_config.json does not "
                              "name; " +
                              kSaveAdapter);
    }
    tokens.ids = *ids;
  }
  for (const std::string& name : config.token_modules()) {
    const bool is_there = std::ranges::any_of(
        adapter->tokens, [&](const LoraTokens& tokens) { return is_named(tokens.module, name); });
    if (!is_there) adapter->tokens.push_back({"", name, {}});
  }
  return {};
}

Result<LoraPairs> find_pairs(const AdapterFile& file, LoraAdapter* adapter) {
  const std::string& path = file.path;
  LoraPairs pairs;
  for (const auto& [own_name, tensor] : file.tensors()) {
    if (is_original(file, own_name) || own_name.find(kSampler) != own_name.npos) continue;
    const std::string name = without_adapter_name(own_name);
    const auto* ending = std::ranges::find_if(
        kLoraEndings, [&](const LoraEnding& each) { return name.ends_with(each.text); });
    if (ending == std::end(kLoraEndings)) {
      if (note_matrix(name, adapter)) continue;
      return unsupported(path + ": tensor '" + name + "': " + why_not_applied(name));
    }
    const std::string module =
        plain_tensor_name(name.substr(0, name.size() - std::strlen(ending->text)));
    LoraPair& pair = pairs[module];
    const TensorView*& place = pair.*ending->place;
    if (place != nullptr) {
      return invalid_argument(path + ": the adapter of '" + module + "' is there twice; " +
                              kSaveAdapter);
    }
    place = &tensor;
  }
  for (const auto& [module, pair] : pairs) {
    if (pair.a != nullptr && pair.b != nullptr) continue;
    return invalid_argument(path + ": the adapter of '" + module + "' lacks lora_" +
                            (pair.a == nullptr ? "A; " : "B; ") + kSaveAdapter);
  }
  if (pairs.empty()) return invalid_argument(path + ": it holds no adapter; " + kSaveAdapter);
  return pairs;
}

// DoRA has magnitudes for every module.
Status check_magnitude(const std::string& module, const LoraPair& pair, const PeftConfig& config) {
  const bool is_there = pair.magnitude != nullptr;
  if (is_there == config.uses_dora()) return {};
  return invalid_argument(pair.a->file + ": it " + (is_there ? "holds" : "lacks") +
                          " magnitudes of '" + module +
                          "', but use_dora of adapter_config.json is " +
                          (is_there ? "false; " : "true; ") + kSaveAdapter);
}

Status check_shapes(const std::string& module, const LoraPair& pair, int32_t rank) {
  for (const TensorView* tensor : {pair.a, pair.b}) {
    const bool is_a = tensor == pair.a;
    const bool fits = tensor->shape.size() == 2 && tensor->shape[is_a ? 0 : 1] == rank &&
                      tensor->num_elements() > 0;
    if (fits) continue;
    return invalid_argument(tensor->file + ": tensor '" + tensor->name + "' has shape " +
                            tensor->shape_text() + ", but adapter_config.json says rank " +
                            std::to_string(rank) + " for '" + module +
                            "'; correct r or rank_pattern there, or " + kSaveAdapter);
  }
  return {};
}

// Of float32 or bfloat16, whose exponent has the same place in the upper half.
bool is_finite(std::span<const std::byte> values, DType dtype) {
  const size_t size = dtype_size(dtype);
  constexpr uint16_t kExponent = 0x7f80;
  for (size_t i = size - 2; i < values.size(); i += size) {
    uint16_t upper = 0;
    std::memcpy(&upper, values.data() + i, sizeof upper);
    if ((upper & kExponent) == kExponent) return false;
  }
  return true;
}

Result<std::vector<std::byte>> read_matrix(const TensorView& tensor, DType dtype) {
  FT_RETURN_IF_ERROR(check_convertible(tensor));
  std::vector<std::byte> out(static_cast<size_t>(tensor.num_elements()) * dtype_size(dtype));
  std::vector<std::byte> raw;
  FT_RETURN_IF_ERROR(read_elements(tensor, 0, tensor.num_elements(), dtype, out.data(), raw));
  if (!is_finite(out, dtype)) {
    return invalid_argument(tensor.file + ": tensor '" + tensor.name +
                            "' holds infinite values or none at all (NaN), as a training that "
                            "diverged leaves them; take an earlier checkpoint");
  }
  return out;
}

Result<LoraLinear> read_linear(const std::string& module, const LoraPair& pair,
                               const PeftConfig& config, DType dtype, int32_t max_rank) {
  LoraLinear linear;
  linear.module = module;
  FT_ASSIGN_OR_RETURN(const bool wanted, config.targets(module));
  if (!wanted) {
    return invalid_argument(pair.a->file + ": it holds an adapter of '" + module +
                            "', which adapter_config.json does not target; name it in "
                            "target_modules there, or " +
                            kSaveAdapter);
  }
  FT_ASSIGN_OR_RETURN(linear.rank, config.rank(module));
  FT_ASSIGN_OR_RETURN(linear.scale, config.scale(module));
  FT_RETURN_IF_ERROR(check_shapes(module, pair, linear.rank));
  FT_RETURN_IF_ERROR(check_magnitude(module, pair, config));
  if (pair.magnitude != nullptr) linear.magnitude = pair.magnitude->name;
  if (linear.rank > max_rank) {
    return invalid_argument(pair.a->file + ": the adapter of '" + module + "' has rank " +
                            std::to_string(linear.rank) + ", but --max-lora-rank is " +
                            std::to_string(max_rank) + "; raise it to " +
                            std::to_string(linear.rank));
  }
  linear.inputs = pair.a->shape[1];
  linear.outputs = pair.b->shape[0];
  FT_ASSIGN_OR_RETURN(linear.a, read_matrix(*pair.a, dtype));
  FT_ASSIGN_OR_RETURN(linear.b, read_matrix(*pair.b, dtype));
  return linear;
}

class AdapterWriter {
 public:
  void add(const void* data, size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    out.insert(out.end(), from, from + bytes);
  }
  template <class T>
  void add(const T& value) {
    add(&value, sizeof value);
  }
  template <class List>
  void add_list(const List& list) {
    const size_t bytes = list.size() * sizeof(*list.data());
    add(static_cast<uint64_t>(bytes));
    add(list.data(), bytes);
  }

  std::vector<std::byte> out;
};

// Not less than it has packed, and little more.
size_t max_packed_bytes(const LoraAdapter& adapter) {
  constexpr size_t kFields = 64;  // the numbers and sizes of an entry
  size_t bytes = kFields;
  for (const LoraLinear& linear : adapter.linears) {
    bytes += kFields + linear.module.size() + linear.a.size() + linear.b.size() +
             linear.factors.size() * sizeof(float);
  }
  for (const WholeMatrix& whole : adapter.wholes) {
    bytes += kFields + whole.module.size() + whole.values.size();
  }
  return bytes;
}

class AdapterReader {
 public:
  explicit AdapterReader(const std::vector<std::byte>& bytes) : bytes_(bytes) {}

  template <class T>
  bool read(T* out) {
    return read_bytes(out, sizeof *out);
  }
  template <class List>
  bool read_list(List* out) {
    constexpr size_t kElement = sizeof(typename List::value_type);
    uint64_t bytes = 0;
    if (!read(&bytes) || bytes > bytes_.size() - at_ || bytes % kElement != 0) return false;
    out->resize(bytes / kElement);
    return read_bytes(out->data(), bytes);
  }

 private:
  bool read_bytes(void* out, size_t count) {
    if (count > bytes_.size() - at_) return false;
    if (count > 0) std::memcpy(out, bytes_.data() + at_, count);
    at_ += count;
    return true;
  }

  const std::vector<std::byte>& bytes_;
  size_t at_ = 0;
};

}  // namespace

int32_t LoraAdapter::max_rank() const {
  int32_t most = 0;
  for (const LoraLinear& linear : linears) most = std::max(most, linear.rank);
  return most;
}

Result<AdapterFile> open_peft_weights(const std::string& path) {
  const fs::path folder = path;
  std::error_code error;
  AdapterFile file{(folder / "adapter_model.safetensors").string(), nullptr, nullptr};
  if (fs::exists(file.path, error)) {
    FT_ASSIGN_OR_RETURN(file.safetensors, SafetensorsFile::open(file.path));
    return file;
  }
  const std::string missing = file.path;
  file.path = (folder / "adapter_model.bin").string();
  if (fs::exists(file.path, error)) {
    FT_ASSIGN_OR_RETURN(file.torch, TorchFile::open(file.path));
    return file;
  }
  if (fs::exists(folder / "adapters.safetensors", error)) {
    return unsupported(folder.string() +
                       " is an adapter of MLX, which is not read; fuse it into its model "
                       "(mlx_lm.fuse --de-quantize), or train it with PEFT");
  }
  return not_found(missing + kIsMissing);
}

namespace {

// Where the folder or the file is not there, or has something else, an adapter is wanted whole.
Result<PeftConfig> read_config(const fs::path& folder) {
  const std::string path = (folder / "adapter_config.json").string();
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return not_found("the folder " + folder.string() + kIsMissing);
  if (!fs::exists(path, error)) return not_found(path + kIsMissing);
  FT_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  const auto json = parse_ordered_python_json_object(text, path);
  if (json.ok()) return PeftConfig::parse(json.value(), path);
  return Status(json.status().code(), json.status().message() + "; " + kSaveAdapter);
}

}  // namespace

Result<LoraAdapter> read_peft_adapter(const std::string& folder, DType dtype, int32_t max_rank) {
  if (is_gguf(folder)) {
    return unsupported(folder +
                       ": adapters are not read from GGUF files; give the PEFT folder that it was "
                       "converted from");
  }
  FT_ASSIGN_OR_RETURN(const PeftConfig config, read_config(folder));
  FT_ASSIGN_OR_RETURN(const AdapterFile file, open_peft_weights(folder));
  LoraAdapter adapter;
  FT_ASSIGN_OR_RETURN(const LoraPairs pairs, find_pairs(file, &adapter));
  FT_RETURN_IF_ERROR(check_saved(file, config, adapter.bases));
  FT_RETURN_IF_ERROR(find_token_ids(file, config, &adapter));
  adapter.config = config;
  adapter.invocation = config.invocation();
  adapter.transposed = config.transposes();
  adapter.dtype = dtype;
  for (LoraBase& base : adapter.bases) {
    FT_ASSIGN_OR_RETURN(base.was_trained, config.saves(module_of(base.name)));
    base.ties = config.ties_head() || !base.was_trained;
  }
  for (const auto& [module, pair] : pairs) {
    FT_ASSIGN_OR_RETURN(LoraLinear linear, read_linear(module, pair, config, dtype, max_rank));
    adapter.linears.push_back(std::move(linear));
  }
  return adapter;
}

Status read_wholes(const std::string& folder, const std::vector<LoraBase>& bases,
                   LoraAdapter* adapter) {
  if (bases.empty()) return {};
  FT_ASSIGN_OR_RETURN(const AdapterFile file, open_peft_weights(folder));
  for (const LoraBase& base : bases) {
    const TensorView& tensor = file.tensors().at(base.tensor);
    if (tensor.shape.size() != 2 || tensor.num_elements() == 0) {
      return invalid_argument(file.path + ": tensor '" + base.tensor + "' has shape " +
                              tensor.shape_text() + ", but a matrix is wanted; " + kSaveAdapter);
    }
    WholeMatrix whole{module_of(base.name), tensor.shape[0], tensor.shape[1], {}};
    FT_ASSIGN_OR_RETURN(whole.values, read_matrix(tensor, adapter->dtype));
    adapter->wholes.push_back(std::move(whole));
  }
  return {};
}

std::vector<std::byte> pack_adapter(const LoraAdapter& adapter) {
  AdapterWriter writer;
  writer.out.reserve(max_packed_bytes(adapter));
  writer.add(adapter.dtype);
  writer.add(static_cast<uint64_t>(adapter.linears.size()));
  for (const LoraLinear& linear : adapter.linears) {
    writer.add_list(linear.module);
    writer.add(linear.rank);
    writer.add(linear.inputs);
    writer.add(linear.outputs);
    writer.add(linear.scale);
    writer.add_list(linear.a);
    writer.add_list(linear.b);
    writer.add_list(linear.factors);
  }
  writer.add(static_cast<uint64_t>(adapter.wholes.size()));
  for (const WholeMatrix& whole : adapter.wholes) {
    writer.add_list(whole.module);
    writer.add(whole.rows);
    writer.add(whole.columns);
    writer.add_list(whole.values);
  }
  return std::move(writer.out);
}

Result<LoraAdapter> unpack_adapter(const std::vector<std::byte>& packed) {
  AdapterReader reader(packed);
  LoraAdapter adapter;
  uint64_t count = 0;
  bool whole = reader.read(&adapter.dtype) && reader.read(&count);
  for (uint64_t i = 0; whole && i < count; ++i) {
    LoraLinear& linear = adapter.linears.emplace_back();
    whole = reader.read_list(&linear.module) && reader.read(&linear.rank) &&
            reader.read(&linear.inputs) && reader.read(&linear.outputs) &&
            reader.read(&linear.scale) && reader.read_list(&linear.a) &&
            reader.read_list(&linear.b) && reader.read_list(&linear.factors);
  }
  whole = whole && reader.read(&count);
  for (uint64_t i = 0; whole && i < count; ++i) {
    WholeMatrix& matrix = adapter.wholes.emplace_back();
    whole = reader.read_list(&matrix.module) && reader.read(&matrix.rows) &&
            reader.read(&matrix.columns) && reader.read_list(&matrix.values);
  }
  if (whole) return adapter;
  return internal_error("an adapter from another rank is cut short");
}

}  // namespace foretoken
