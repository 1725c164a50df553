#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include "base/log.h"
#include "model/files/checkpoint.h"
#include "model/files/containers/json_file.h"
#include "model/files/tensor_names.h"

// What the index of a checkpoint says of its files.

namespace foretoken {

// What an index says beyond the names of its shards no weight depends on: it may be older than they
// are. A tensor that the model needs is looked for by its own name.
Status Checkpoint::check_index(const std::string& index_path) const {
  FT_ASSIGN_OR_RETURN(const nlohmann::json index, read_json_file(index_path));
  for (const auto& [name, shard] : index["weight_map"].items()) {
    const auto it = tensors_.find(plain_tensor_name(name));
    if (it != tensors_.end() &&
        std::filesystem::path(it->second->file).filename() == shard.get<std::string>()) {
      continue;
    }
    FT_LOG(warn, "{}: tensor '{}' is not in {}; the index is older than the files, which are used",
           index_path, name, shard.get<std::string>());
    break;
  }
  return {};
}

// A file that the index does not name has what it lacks, or is another form of the same weights, or
// of another model. Only the first is taken: all names are new, and so is no wrapper around them.
void Checkpoint::add_unindexed(const std::string& path, const std::string& index_path) {
  std::set<std::string_view> wrappers = {""};
  for (const auto& [name, tensor] : tensors_) wrappers.insert(wrapper_of(name));
  const size_t before = tensors_.size(), num_files = files_.size(), num_torch = torch_files_.size();
  std::map<std::string, const TensorView*> own = tensors_;
  const bool added = add_file(path).ok() && tensors_.size() > before;
  const bool wraps = std::ranges::any_of(
      tensors_, [&](const auto& entry) { return !wrappers.contains(wrapper_of(entry.first)); });
  if (added && !wraps) {
    unindexed_.insert(path);
    FT_LOG(warn, "{} does not name {}, which has {} more tensors; they are used", index_path, path,
           tensors_.size() - before);
    return;
  }
  tensors_ = std::move(own);
  files_.resize(num_files);
  torch_files_.resize(num_torch);
}

}  // namespace foretoken
