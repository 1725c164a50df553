#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "hub/hub_api.h"

namespace foretoken {

inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kWeightsIndex = "model.safetensors.index.json";

// The files of a repository that the engine reads, apart from shards that an index names: first the
// configuration, the tokenizer and the chat template, then the weights if `weights`: safetensors,
// or where there are none pytorch_model*.bin, of which nothing is run (model/pickle.h). Never
// folders, consolidated*.safetensors or adapters. Unsupported when there is no config.json, or no
// weights though `weights`.
Result<std::vector<HubFile>> wanted_files(const HubListing& listing, bool weights,
                                          const std::string& repo);

// An index of weights: where it lies, and its name in the repository, which cached files lack.
struct IndexFile {
  IndexFile(const std::filesystem::path& file)  // NOLINT(google-explicit-constructor)
      : path(file), name(file.filename().string()) {}
  IndexFile(const std::string& file) : IndexFile(std::filesystem::path(file)) {}  // NOLINT
  IndexFile(std::filesystem::path file, std::string named)
      : path(std::move(file)), name(std::move(named)) {}

  std::filesystem::path path;
  std::string name;
};

// The names of the shards in an index file of `repo`, each once. InvalidArgument when it is broken
// or a name is not that of a file in the same folder.
Result<std::vector<std::string>> index_shards(const IndexFile& index, const std::string& repo);

bool is_weights_index(const std::string& name);

// The shards that an index names, out of the listing; all weights where it names none of those that
// are there. NotFound names one that is not there.
Result<std::vector<HubFile>> find_shards(const IndexFile& index, const HubListing& listing,
                                         const std::string& repo);

// What a snapshot's folder lacks to be loaded: the name of a file that is missing or empty. Empty
// when all is there.
std::string missing_file(const std::filesystem::path& folder, bool weights);

}  // namespace foretoken
