#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// The commit of a revision in a cached repository (models--org--name): what refs/<revision> says,
// the revision itself where it is a commit, or the one snapshot whose commit begins with it, of at
// least seven digits. Empty when it is not known.
std::string find_cached_commit(const std::filesystem::path& repository,
                               const std::string& revision);

// Whether a revision is the beginning of a commit, not a whole one.
bool is_short_commit(const std::string& revision);

// Names of refs and commits in a cached repository, for messages.
std::vector<std::string> cached_revisions(const std::filesystem::path& repository);

// The folder of a model that a user named by a folder of a cache: a snapshot for models--org--name
// and its `snapshots`, by `revision`, else main, else the only one. Any other folder is itself.
// InvalidArgument where a revision is missing or a choice must be made.
Result<std::string> folder_in_cache(const std::string& folder, const std::string& revision);

}  // namespace foretoken
