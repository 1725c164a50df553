#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "hub/hub_api.h"

namespace foretoken {

inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kWeightsIndex = "model.safetensors.index.json";

// The files of a repository that the engine reads, apart from shards that an index names: first the
// configuration, the tokenizer and the chat template, then the weights if `weights`. Never folders,
// consolidated*.safetensors, adapters or formats that can hold programs. Unsupported when there is
// no config.json, or no safetensors though `weights`.
Result<std::vector<HubFile>> wanted_files(const HubListing& listing, bool weights,
                                          const std::string& repo);

// The names of the shards in an index file of `repo`, each once. InvalidArgument when it is broken
// or a name is not that of a file in the same folder.
Result<std::vector<std::string>> index_shards(const std::filesystem::path& index,
                                              const std::string& repo);

// The shards that an index names, out of the listing. NotFound names one that is not there.
Result<std::vector<HubFile>> find_shards(const std::filesystem::path& index,
                                         const HubListing& listing, const std::string& repo);

// What a snapshot's folder lacks to be loaded: the name of a file that is missing or empty. Empty
// when all is there.
std::string missing_file(const std::filesystem::path& folder, bool weights);

}  // namespace foretoken
