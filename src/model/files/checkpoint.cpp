#include "model/files/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <set>

#include "base/log.h"
#include "gguf/hf_names.h"
#include "gguf/meta_params.h"
#include "model/files/containers/json_file.h"
#include "model/files/foreign_tensors.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/packed_names.h"
#include "model/files/forms/quantization.h"
#include "model/files/forms/scaled_names.h"
#include "model/files/forms/stream_names.h"
#include "model/files/tensor_names.h"

namespace foretoken {

namespace fs = std::filesystem;

namespace {

// The tensor that stands for a matrix of several, which may be null behind the first.
std::unique_ptr<TensorView> view_of_made(const std::string& name,
                                         std::initializer_list<const TensorView*> parts) {
  auto view = std::make_unique<TensorView>();
  view->name = name;
  view->file = (*parts.begin())->file;
  view->dtype = FileDType::kOther;
  for (const TensorView* part : parts) view->num_bytes += part != nullptr ? part->num_bytes : 0;
  return view;
}

// A model that ties its output matrix to the embedding may be written with the former alone.
bool has_tied_head_alone(const std::map<std::string, const TensorView*>& tensors,
                         const std::string& folder) {
  const auto is_table = [](const auto& entry) {
    return entry.first.ends_with("embed_tokens.weight") ||
           entry.first.ends_with("embed_tokens.embedding_quantized");
  };
  if (!tensors.contains("lm_head.weight") || std::ranges::any_of(tensors, is_table)) return false;
  const Result<nlohmann::json> config = read_config_json(folder);
  return config.ok() && config.value().value("tie_word_embeddings", nlohmann::json()) == true;
}

}  // namespace

TensorView gguf_tensor_view(const GgufTensor& tensor) {
  TensorView view;
  view.name = tensor.name;
  view.file = tensor.part->path;
  view.dtype_name = std::string(tensor.type->name);
  view.dtype = view.dtype_name == "F32"    ? FileDType::kF32
               : view.dtype_name == "F16"  ? FileDType::kF16
               : view.dtype_name == "BF16" ? FileDType::kBF16
                                           : FileDType::kOther;
  if (view.dtype == FileDType::kOther) view.block = tensor.type;
  view.shape = tensor.shape;
  view.data = tensor.part->file->memory() + tensor.offset;
  view.num_bytes = tensor.num_bytes;
  view.descriptor = tensor.part->file->descriptor();
  view.file_offset = tensor.offset;
  return view;
}

Status Checkpoint::interleave(int64_t head_dim, TensorView* view) {
  const bool has_heads =
      head_dim > 0 && head_dim % 2 == 0 && !view->shape.empty() && view->shape[0] % head_dim == 0;
  if (!has_heads) {
    return invalid_argument(view->file + ": the tensor '" + view->name + "' has the shape " +
                            view->shape_text() + ", which is no multiple of heads of " +
                            std::to_string(head_dim) + " rows; convert the model again");
  }
  view->interleaved_rows = head_dim;
  return {};
}

Result<Checkpoint> Checkpoint::open(const ModelFiles& model) {
  const std::string folder = model.text();
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  if (model.is_gguf()) {
    FT_RETURN_IF_ERROR(checkpoint.add_gguf(model));
    return checkpoint;
  }
  FT_ASSIGN_OR_RETURN(const WeightFiles weights, find_weight_files(folder));
  if (has_meta_params(folder)) {
    FT_RETURN_IF_ERROR(checkpoint.add_meta(weights.files));
  } else {
    for (const fs::path& file : weights.files) {
      FT_RETURN_IF_ERROR(checkpoint.add_file(file.string()));
    }
  }
  if (!weights.index.empty()) FT_RETURN_IF_ERROR(checkpoint.check_index(weights.index));
  for (const fs::path& file : weights.others) {
    checkpoint.add_unindexed(file.string(), weights.index);
  }
  checkpoint.unwrap_names();
  if (has_tied_head_alone(checkpoint.tensors_, folder)) {
    checkpoint.tensors_["model.embed_tokens.weight"] = checkpoint.tensors_["lm_head.weight"];
  }
  FT_RETURN_IF_ERROR(checkpoint.repair_resaved());
  FT_RETURN_IF_ERROR(checkpoint.take_text_experts());
  FT_RETURN_IF_ERROR(checkpoint.take_names_of_makers());
  FT_RETURN_IF_ERROR(checkpoint.take_names_of_encoders());
  FT_RETURN_IF_ERROR(checkpoint.add_unpacked());
  FT_RETURN_IF_ERROR(check_foreign_tensors(checkpoint.tensors_));
  FT_RETURN_IF_ERROR(checkpoint.add_mlx());
  FT_RETURN_IF_ERROR(checkpoint.add_float_zeros());
  FT_RETURN_IF_ERROR(checkpoint.add_fp_quant());
  FT_RETURN_IF_ERROR(checkpoint.add_gemma());
  FT_RETURN_IF_ERROR(checkpoint.add_packed());
  FT_RETURN_IF_ERROR(checkpoint.add_bnb());
  FT_RETURN_IF_ERROR(checkpoint.add_scaled());
  FT_RETURN_IF_ERROR(checkpoint.pair_rows_of_makers());
  FT_RETURN_IF_ERROR(checkpoint.add_online());
  FT_RETURN_IF_ERROR(checkpoint.add_widened());
  return checkpoint;
}

namespace {

// The name of the tensor that has the matrices of all experts, as GGUF files do, by that of one.
std::string of_all_experts(const std::string& name) {
  constexpr std::string_view kExperts = ".experts.";
  const size_t at = name.find(kExperts);
  if (at == std::string::npos) return name;
  const size_t number = at + kExperts.size();
  const size_t end = name.find_first_not_of("0123456789", number);
  if (end == number || end == std::string::npos) return name;
  return name.substr(0, number) + name.substr(end + 1);
}

}  // namespace

Result<const TensorView*> Checkpoint::find(const std::string& name) const {
  const auto it = tensors_.find(name);
  if (it != tensors_.end()) return it->second;
  auto own = architecture_ != nullptr ? gguf_tensor_name(*architecture_, name) : std::nullopt;
  if (architecture_ != nullptr && !own)
    own = gguf_tensor_name(*architecture_, of_all_experts(name));
  const bool is_model = gguf_ == nullptr && tensors_.contains("model.embed_tokens.weight");
  const char* tied = is_model && name == "lm_head.weight"
                         ? ", or its head is its embedding (--hf-overrides "
                           "'{\"tie_word_embeddings\": true}')"
                         : "";
  return not_found("tensor '" + own.value_or(name) + "' is missing in " + folder_ +
                   "; the weights do not belong to " + config_name() + ", or a shard is missing" +
                   tied);
}

void Checkpoint::add_identity(const std::string& name, int64_t size) {
  constexpr uint16_t kOne = 0x3f80;
  made_rows_.push_back(
      std::make_unique<std::vector<uint16_t>>(static_cast<size_t>(size * size), uint16_t{0}));
  std::vector<uint16_t>& rows = *made_rows_.back();
  for (int64_t i = 0; i < size; ++i) rows[static_cast<size_t>(i * size + i)] = kOne;
  auto view = std::make_unique<TensorView>();
  view->name = name;
  view->file = folder_;
  view->dtype = FileDType::kBF16;
  view->dtype_name = "BF16";
  view->shape = {size, size};
  view->data = reinterpret_cast<const std::byte*>(rows.data());
  view->num_bytes = std::ssize(rows) * static_cast<int64_t>(sizeof(uint16_t));
  tensors_[name] = view.get();
  made_tensors_.push_back(std::move(view));
}

std::string Checkpoint::config_name() const {
  return gguf_ != nullptr ? "its metadata" : "its config.json";
}

Status Checkpoint::add_file(const std::string& path) {
  if (!path.ends_with(".safetensors")) {
    FT_ASSIGN_OR_RETURN(auto file, TorchFile::open(path));
    FT_RETURN_IF_ERROR(add_tensors(file->tensors(), path));
    torch_files_.push_back(std::move(file));
    return {};
  }
  FT_ASSIGN_OR_RETURN(auto file, SafetensorsFile::open(path));
  FT_RETURN_IF_ERROR(add_tensors(file->tensors(), path));
  add_shared(*file);
  files_.push_back(std::move(file));
  return {};
}

// A matrix that two names share is written once by save_model of safetensors, under one of them.
void Checkpoint::add_shared(const SafetensorsFile& file) {
  for (const auto& [left_out, kept] : file.metadata()) {
    const auto found = file.tensors().find(kept);
    if (found != file.tensors().end()) {
      tensors_.emplace(plain_tensor_name(left_out), &found->second);
    }
  }
}

Status Checkpoint::add_tensors(const std::map<std::string, TensorView>& tensors,
                               const std::string& path) {
  for (const auto& [name, tensor] : tensors) {
    if (is_adapter_tensor(name)) {
      return unsupported(path + ": tensor '" + name +
                         "' belongs to an adapter that was not merged into the weights; save the "
                         "model with PEFT's merge_and_unload");
    }
    const auto [it, added] = tensors_.emplace(plain_tensor_name(name), &tensor);
    if (!added) {
      return invalid_argument("tensor '" + name + "' is in " + it->second->file + " and in " +
                              path + "; remove the shard that does not belong to the model");
    }
  }
  return {};
}

void Checkpoint::rename(std::string (*new_name)(const std::string& name)) {
  std::map<std::string, const TensorView*> renamed;
  for (const auto& [name, tensor] : tensors_) renamed.emplace(new_name(name), tensor);
  tensors_ = std::move(renamed);
}

// Of several models in a folder none is the one.
void Checkpoint::unwrap_names() {
  if (has_own_stream_names(tensors_)) return rename(published_stream_name);
  if (has_moved_stream_names(tensors_)) rename(unmoved_stream_name);
  std::set<std::string> wrappers;
  for (const auto& [name, tensor] : tensors_) {
    if (const std::string_view wrapper = wrapper_of(name); !wrapper.empty()) {
      wrappers.emplace(wrapper);
    }
    if (name.starts_with("model.embed_tokens.")) return;
  }
  if (wrappers.size() != 1) return;
  const std::string& wrapper = *wrappers.begin();
  std::map<std::string, const TensorView*> plain;
  for (const auto& [name, tensor] : tensors_) {
    plain.emplace(name.starts_with(wrapper) ? name.substr(wrapper.size()) : name, tensor);
  }
  tensors_ = std::move(plain);
}

std::string Checkpoint::config_path() const { return (fs::path(folder_) / "config.json").string(); }

// What the folder's config.json says, which must say something.
Result<Quantization> Checkpoint::read_own_quantization() const {
  const std::string path = config_path();
  FT_ASSIGN_OR_RETURN(const nlohmann::json config, read_config_json(folder_));
  FT_ASSIGN_OR_RETURN(const auto quantization, read_quantization(config, path));
  if (quantization) return *quantization;
  return invalid_argument(path +
                          ": the weights are quantised, but 'quantization_config' is missing; "
                          "fetch the quantize_config.json or quant_config.json of the model");
}

// A matrix takes the place of the tensors that make it up.
Status Checkpoint::add_matrix(std::unique_ptr<TensorView> view,
                              const std::vector<std::string>& parts) {
  for (const std::string& name : parts) tensors_.erase(name);
  if (!tensors_.emplace(view->name, view.get()).second) {
    return invalid_argument(view->file + ": the matrix '" + view->name +
                            "' is there quantised and plain; remove one of them");
  }
  made_tensors_.push_back(std::move(view));
  return {};
}

Status Checkpoint::add_packed() {
  if (!has_packed(tensors_)) return {};
  FT_ASSIGN_OR_RETURN(Quantization quantization, read_own_quantization());
  FT_ASSIGN_OR_RETURN(const auto found, find_packed(tensors_, quantization.layout));
  rounds_activations_ = quantization.rounds_activations;
  if (quantization.layout == PackLayout::kScaled) {
    quantization.layout = PackLayout::kCompressed;
    quantization.differs = true;
  }
  for (const NamedParts& named : found) {
    FT_ASSIGN_OR_RETURN(PackedTensor packed, PackedTensor::create(quantization, named.parts));
    packed_.push_back(std::make_unique<PackedTensor>(std::move(packed)));
    auto view = view_of_made(named.base + ".weight",
                             {named.parts.codes, named.parts.scales, named.parts.zeros});
    view->dtype_name = std::to_string(packed_.back()->quantization().bits) + " bits";
    view->shape = {packed_.back()->rows(), packed_.back()->cols()};
    view->packed = packed_.back().get();
    FT_RETURN_IF_ERROR(add_matrix(std::move(view), named.names));
  }
  return {};
}

// Scales of other activations than those that FP8 matrices multiply go.
Status Checkpoint::add_scaled() {
  FT_ASSIGN_OR_RETURN(const auto found, find_scaled(tensors_));
  if (found.empty()) return {};
  FT_ASSIGN_OR_RETURN(const Quantization quantization, read_own_quantization());
  rounds_activations_ = quantization.rounds_activations;
  std::erase_if(tensors_, [](const auto& entry) { return is_activation_scale(entry.first); });
  for (const NamedScaled& named : found) {
    FT_ASSIGN_OR_RETURN(ScaledTensor scaled, ScaledTensor::create(quantization, named.parts));
    scaled_.push_back(std::make_unique<ScaledTensor>(std::move(scaled)));
    auto view = view_of_made(named.name, {named.parts.codes, named.parts.scales});
    view->dtype_name = scaled_.back()->type_name();
    view->shape = scaled_.back()->shape();
    view->scaled = scaled_.back().get();
    FT_ASSIGN_OR_RETURN(view->input_scale, input_scale_of(named));
    if (named.column_scales != nullptr) {
      FT_ASSIGN_OR_RETURN(view, with_column_scales(std::move(view), *named.column_scales));
    }
    FT_RETURN_IF_ERROR(add_matrix(std::move(view), named.names));
  }
  return {};
}

Status Checkpoint::add_bnb() {
  FT_ASSIGN_OR_RETURN(const auto found, find_bnb(tensors_));
  if (found.empty()) return {};
  FT_RETURN_IF_ERROR(read_own_quantization().status());
  for (const BnbParts& parts : found) {
    FT_ASSIGN_OR_RETURN(BnbTensor tensor, BnbTensor::create(parts));
    bnb_.push_back(std::make_unique<BnbTensor>(std::move(tensor)));
    auto view = view_of_made(parts.name, {parts.codes, parts.scales});
    view->dtype_name = bnb_.back()->has_four_bits() ? "NF4" : "LLM.int8";
    view->shape = bnb_.back()->shape();
    view->bnb = bnb_.back().get();
    FT_RETURN_IF_ERROR(add_matrix(std::move(view), parts.names));
  }
  return {};
}

// All matrices of layers, of which BitNet's are.
Status Checkpoint::add_online() {
  const std::string path = config_path();
  if (!fs::exists(path)) return {};
  FT_ASSIGN_OR_RETURN(const nlohmann::json config, read_config_json(folder_));
  const auto quantization = read_quantization(config, path);
  if (!quantization.ok() || !quantization.value() || !quantization.value()->is_online) return {};
  for (auto& [name, tensor] : tensors_) {
    const bool is_of_layer = name.find("layers.") != std::string::npos;
    if (!is_of_layer || tensor->shape.size() != 2 || !name.ends_with(".weight")) continue;
    made_.push_back(std::make_unique<MadeTensor>(*tensor, Making::kTernary));
    made_tensors_.push_back(std::make_unique<TensorView>(made_view(*tensor, *made_.back())));
    tensor = made_tensors_.back().get();
  }
  return {};
}

// `name` becomes plain [rows, k] times the matrix `factor`, [k, cols] or turned.
Status Checkpoint::add_product(const std::string& name, const TensorView& plain,
                               const std::string& factor, bool turned) {
  FT_ASSIGN_OR_RETURN(const TensorView* matrix, find(factor));
  const size_t side = turned ? 1 : 0;
  const bool fits =
      plain.shape.size() == 2 && matrix->shape.size() == 2 && matrix->shape[side] == plain.shape[1];
  if (!fits) {
    return invalid_argument(matrix->file + ": the tensor '" + factor + "' has the shape " +
                            matrix->shape_text() + ", which does not fit embeddings of the shape " +
                            plain.shape_text() + "; fetch the file again");
  }
  FT_RETURN_IF_ERROR(check_convertible(*matrix));
  std::vector<float> values(static_cast<size_t>(matrix->num_elements()));
  FT_RETURN_IF_ERROR(convert_tensor(*matrix, DType::kF32, values.data()));
  const int64_t inner = plain.shape[1], cols = matrix->shape[1 - side];
  std::vector<float> lines(turned ? values.size() : 0);
  for (int64_t c = 0; turned && c < cols; ++c) {
    for (int64_t k = 0; k < inner; ++k) {
      lines[static_cast<size_t>(k * cols + c)] = values[static_cast<size_t>(c * inner + k)];
    }
  }
  made_.push_back(std::make_unique<MadeTensor>(plain, turned ? lines : values, cols));
  made_tensors_.push_back(std::make_unique<TensorView>(made_view(plain, *made_.back())));
  tensors_[name] = made_tensors_.back().get();
  return {};
}

Status Checkpoint::add_widened() {
  constexpr std::string_view kIn = "project_in.weight";
  const auto found =
      std::ranges::find_if(tensors_, [&](const auto& entry) { return entry.first.ends_with(kIn); });
  if (found == tensors_.end()) return {};
  const std::string in = found->first, body = in.substr(0, in.size() - kIn.size());
  const std::string out = body + "project_out.weight", table = body + "embed_tokens.weight";
  FT_ASSIGN_OR_RETURN(const TensorView* plain, find(table));
  FT_RETURN_IF_ERROR(add_product(table, *plain, in, true));
  FT_RETURN_IF_ERROR(add_product("lm_head.weight", *plain, out, false));
  tensors_.erase(in);
  tensors_.erase(out);
  return {};
}

namespace {

// Of the zero points of an FP8 KV cache, which its scales alone describe where they are 0.
bool is_kv_zero_point(const TensorView& tensor) {
  const std::string_view name = tensor.name;
  const bool is_one = name.ends_with(".k_zero_point") || name.ends_with(".v_zero_point") ||
                      name.ends_with(".q_zero_point");
  if (!is_one || tensor.data == nullptr) return false;
  return std::all_of(tensor.data, tensor.data + tensor.num_bytes,
                     [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

bool Checkpoint::may_be_left_out(const TensorView& tensor) const {
  if (tensor.num_elements() == 0) return true;
  const std::string plain = plain_tensor_name(tensor.name);
  if (is_of_training(plain) || unindexed_.contains(tensor.file) || is_kv_zero_point(tensor)) {
    return true;
  }
  constexpr std::string_view kBias = ".bias";
  if (!tensor.name.ends_with(kBias) || !check_convertible(tensor).ok()) return false;
  const std::string base = tensor.name.substr(0, tensor.name.size() - kBias.size());
  const auto matrix = tensors_.find(base + ".weight");
  if (matrix == tensors_.end() || matrix->second->packed == nullptr) return false;
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  std::vector<std::byte> raw;
  const Status status =
      read_elements(tensor, 0, tensor.num_elements(), DType::kF32, values.data(), raw);
  return status.ok() && std::all_of(values.begin(), values.end(), [](float v) { return v == 0; });
}

}  // namespace foretoken
