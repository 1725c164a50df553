#pragma once
#include <string>

#include "base/result.h"
#include "hub/hub_options.h"

namespace foretoken {

// The folder of a model that a user named by a folder or by a Hub id, org/name[@revision], or a
// GGUF file that a user named, by its path or as org/name:TYPE, or a model of Ollama's. Paths are
// those of base/files/local_path.h.
//   A folder that exists always wins; one that holds a GGUF file alone stands for that file, and
//   models--org--name of a cache for its snapshot (hub/cache_folder.h).
//   A manifest of Ollama's, or a name that has one, stands for its file (hub/ollama_models.h).
//   A file has no revisions: InvalidArgument where one is wanted.
//   Offline: the cached snapshot, or NotFound.
//   A commit id whose snapshot is whole: that, without the network.
//   Otherwise the Hub says which commit the revision is, and the files that the engine needs and
//   the cache lacks are fetched (see download_snapshot). When the Hub cannot be asked, a whole
//   cached snapshot is used with a warning.
// Blocks until done or cancelled (Aborted). Thread-safe, also between processes.
Result<std::string> resolve_model_folder(const std::string& given, const HubOptions& options);

}  // namespace foretoken
