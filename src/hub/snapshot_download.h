#pragma once
#include <string>

#include "hub/hub_api.h"
#include "hub/repo_cache.h"

namespace foretoken {

// Fetches what the engine needs of a listed commit and returns the snapshot's folder, or
// the path of a GGUF file in it where `id` names one or the repository holds nothing else. Several
// files at once (options.max_parallel); the first error stops the others and is returned. Links
// appear in the snapshot only when all files are there. Files that the snapshot has are not asked
// for.
Result<std::string> download_snapshot(const HubOptions& options, const RepoId& id,
                                      const RepoCache& cache, const HubListing& listing);

}  // namespace foretoken
