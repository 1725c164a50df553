#include <algorithm>
#include <array>

#include "gguf/meta_params.h"
#include "gguf/mistral_params.h"
#include "model/files/checkpoint.h"
#include "model/files/tensor_names.h"

namespace foretoken {
namespace {

constexpr const char* kMetaTable = "tok_embeddings.weight";

bool ends_with_one_of(const std::string& name, std::initializer_list<const char*> endings) {
  return std::ranges::any_of(endings, [&](const char* ending) { return name.ends_with(ending); });
}

// Rows of a head of queries and keys, which in both layouts lie in the pairs that turn.
Result<int64_t> paired_head(const std::string& folder) {
  const bool of_meta = has_meta_params(folder);
  FT_ASSIGN_OR_RETURN(const nlohmann::json config,
                      of_meta ? meta_config(folder) : mistral_config(folder));
  return config.value("head_dim", int64_t{0});
}

// The parts divide the rows of the output matrix among them.
Status check_all_parts(const std::string& folder, const nlohmann::json& config,
                       const std::map<std::string, const TensorView*>& tensors, size_t parts) {
  const auto output = tensors.find("output.weight");
  if (output == tensors.end() || output->second->shape.empty()) return {};
  const int64_t rows = output->second->shape[0], wanted = config.value("vocab_size", int64_t{0});
  if (rows >= wanted) return {};
  return not_found(folder + " lacks consolidated." + (parts < 10 ? "0" : "") +
                   std::to_string(parts) + ".pth: the parts before it hold " +
                   std::to_string(rows) + " of " + std::to_string(wanted) +
                   " rows of 'output.weight'; fetch all parts of the model");
}

}  // namespace

Status Checkpoint::take_names_of_makers() {
  if (!has_mistral_params(folder_) && !has_meta_params(folder_)) return {};
  std::map<std::string, const TensorView*> plain;
  for (const auto& [name, tensor] : tensors_) {
    if (is_mistral_vision(name) || name == "rope.freqs") continue;
    plain[name_without_mistral(name)] = tensor;
  }
  tensors_ = std::move(plain);
  return {};
}

// Once matrices are whole, whatever they are made of: codes, scales and floats of a row lie at the
// same place of the file.
Status Checkpoint::pair_rows_of_makers() {
  if (!has_mistral_params(folder_) && !has_meta_params(folder_)) return {};
  FT_ASSIGN_OR_RETURN(const int64_t head_dim, paired_head(folder_));
  for (auto& [name, tensor] : tensors_) {
    if (!ends_with_one_of(name, {".q_proj.weight", ".k_proj.weight"})) continue;
    made_tensors_.push_back(std::make_unique<TensorView>(*tensor));
    FT_RETURN_IF_ERROR(interleave(head_dim, made_tensors_.back().get()));
    tensor = made_tensors_.back().get();
  }
  return {};
}

// Each file has a part of most matrices, and all of the others.
Status Checkpoint::add_meta(const std::vector<std::filesystem::path>& files) {
  FT_ASSIGN_OR_RETURN(const nlohmann::json config, meta_config(folder_));
  std::map<std::string, std::vector<const TensorView*>> parts;
  for (const std::filesystem::path& path : files) {
    FT_ASSIGN_OR_RETURN(auto file, TorchFile::open(path.string()));
    for (const auto& [name, tensor] : file->tensors()) parts[name].push_back(&tensor);
    torch_files_.push_back(std::move(file));
  }
  for (const auto& [name, all] : parts) {
    if (all.size() != files.size()) {
      return invalid_argument(all[0]->file + ": tensor '" + name + "' is in " +
                              std::to_string(all.size()) + " of " + std::to_string(files.size()) +
                              " files; fetch all parts of one model");
    }
    FT_RETURN_IF_ERROR(add_meta_parts(name, config, all));
  }
  // Small models may be saved without the output matrix that is their embedding.
  const auto table = tensors_.find(kMetaTable);
  if (table != tensors_.end()) tensors_.emplace("output.weight", table->second);
  return check_all_parts(folder_, config, tensors_, files.size());
}

// Llama 1 and 2 divide the columns of the embedding, Llama 3 its rows.
Status Checkpoint::add_meta_parts(const std::string& name, const nlohmann::json& config,
                                  const std::vector<const TensorView*>& parts) {
  const bool by_rows = ends_with_one_of(name, {".wq.weight", ".wk.weight", ".wv.weight",
                                               ".w1.weight", ".w3.weight", "output.weight"});
  const bool by_columns = ends_with_one_of(name, {".wo.weight", ".w2.weight"});
  const bool is_table = name == kMetaTable && parts[0]->shape.size() == 2;
  if (parts.size() == 1 || (!by_rows && !by_columns && !is_table)) {
    tensors_[name] = parts[0];
    return {};
  }
  const bool has_whole_rows = is_table && parts[0]->shape[1] == config["hidden_size"];
  FT_ASSIGN_OR_RETURN(auto joined, JoinedTensor::create(parts, by_rows || has_whole_rows
                                                                   ? JoinedTensor::Axis::kRows
                                                                   : JoinedTensor::Axis::kColumns));
  made_tensors_.push_back(std::make_unique<TensorView>(joined->view(name)));
  tensors_[name] = made_tensors_.back().get();
  joined_.push_back(std::move(joined));
  return {};
}

}  // namespace foretoken
