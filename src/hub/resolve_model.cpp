#include "hub/resolve_model.h"

#include <algorithm>
#include <filesystem>

#include "base/files/local_path.h"
#include "base/log.h"
#include "gguf/container/gguf_file.h"
#include "gguf/vocabulary/folder_tokenizer.h"
#include "hub/cache_folder.h"
#include "hub/file_pieces.h"
#include "hub/foreign_models.h"
#include "hub/gguf_choice.h"
#include "hub/hub_api.h"
#include "hub/ollama_models.h"
#include "hub/repo_cache.h"
#include "hub/snapshot_download.h"
#include "hub/wanted_files.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxListAttempts = 3;  // a missing network should not keep the user waiting

Status check_options(const HubOptions& options) {
  if (options.cache_folder.empty()) {
    return invalid_argument(
        "there is no folder for downloaded models; set HF_HOME or HOME, or "
        "name one with --download-dir");
  }
  const std::string origin = url_origin(options.endpoint);
  if (origin.rfind("https://", 0) != 0 && origin.rfind("http://", 0) != 0) {
    return invalid_argument("HF_ENDPOINT '" + options.endpoint +
                            "' is no address of the form https://host; correct or unset it");
  }
  const bool has_control = std::any_of(options.token.begin(), options.token.end(),
                                       [](unsigned char c) { return c <= 0x20 || c == 0x7f; });
  if (has_control) {
    return invalid_argument(
        "the Hub token (HF_TOKEN or the token file) holds blanks or control "
        "characters; set it again");
  }
  return {};
}

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (!entry.is_regular_file(ignored)) continue;
    names.push_back(entry.path().lexically_relative(folder).generic_string());
  }
  return names;
}

// The cached snapshot of a revision, or what stands in the way.
Result<std::string> cached_snapshot(const RepoCache& cache, const RepoId& id, bool weights) {
  const std::string commit = cache.find_commit(id.revision);
  std::error_code ignored;
  if (commit.empty() || !fs::is_directory(cache.snapshot(commit), ignored)) {
    std::string known;
    for (const std::string& name : cached_revisions(cache.root())) {
      known += (known.empty() ? ", which has " : ", ") + name;
    }
    return not_found("revision '" + id.revision + "' of " + id.name + " is not in the cache (" +
                     cache.root().string() + known + ")");
  }
  const std::vector<std::string> names = files_below(cache.snapshot(commit));
  if (!id.gguf_type.empty() || holds_gguf_alone(names)) {
    FT_ASSIGN_OR_RETURN(const std::vector<std::string> chosen,
                        choose_gguf(names, id.gguf_type, "the cached snapshot of " + id.name));
    return (cache.snapshot(commit) / chosen.front()).string();
  }
  const std::string missing = missing_file(cache.snapshot(commit), weights);
  if (missing.empty()) return cache.snapshot(commit).string();
  return not_found("the cached snapshot " + cache.snapshot(commit).string() +
                   " is incomplete: " + missing + " is missing");
}

Result<std::string> resolve_offline(const RepoCache& cache, const RepoId& id,
                                    const HubOptions& options) {
  const Result<std::string> cached = cached_snapshot(cache, id, options.weights);
  if (cached.ok()) return cached;
  return not_found(cached.status().message() +
                   ", and HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE forbids to fetch it; unset them, "
                   "or give a folder (a local folder '" +
                   id.name + "' does not exist)");
}

bool has_tokenizer(const std::string& folder) {
  std::error_code ignored;
  return is_gguf(folder) || fs::exists(fs::path(folder) / "tokenizer.json", ignored) ||
         !folder_vocabulary(folder).empty();
}

// A piece of a file stands for nothing by itself.
Status check_part_of_file(const std::string& path) {
  const auto piece = file_piece(path);
  if (!piece) return {};
  return invalid_argument("model '" + path + "' is a piece of a file that was cut into several; " +
                          "join the pieces in their order (" + joining_command(*piece) +
                          ") and name the whole file");
}

Result<std::string> named_file(const std::string& path, const std::string& revision) {
  if (revision.empty()) return path;
  return invalid_argument("--revision '" + revision + "' is for Hub ids, and '" + path +
                          "' is a file; remove --revision (of a drafter: \"revision\")");
}

}  // namespace

Result<std::string> resolve_model_folder(const std::string& given, const HubOptions& options) {
  const std::string model = local_path(given);
  std::error_code ignored;
  if (fs::is_directory(model, ignored)) {
    FT_ASSIGN_OR_RETURN(const std::string folder, folder_in_cache(model, options.revision));
    FT_RETURN_IF_ERROR(check_foreign_model(folder));
    return gguf_in_folder(folder);
  }
  if (!is_gguf(model)) {
    FT_ASSIGN_OR_RETURN(const auto ollama, find_ollama_model(model, options.ollama_folder));
    if (ollama) return named_file(ollama->gguf, options.revision);
  }
  if (fs::exists(model, ignored)) {
    FT_RETURN_IF_ERROR(check_part_of_file(model));
    if (is_gguf(model)) return named_file(model, options.revision);
    if (const auto folder = folder_of_named_file(model))
      return named_file(*folder, options.revision);
    FT_RETURN_IF_ERROR(check_foreign_model(model));
    return invalid_argument("model '" + model +
                            "' is a file; give the folder that holds config.json and "
                            "*.safetensors, a GGUF file (*.gguf), or a Hub id (org/name, "
                            "org/name:Q4_K_M)");
  }
  const bool is_address = model.find("://") != std::string::npos;
  if (is_gguf(model) && !is_address)
    return not_found("there is no file '" + model + "'; correct its path");
  FT_ASSIGN_OR_RETURN(const RepoId id, parse_repo_id(model, options.revision));
  FT_RETURN_IF_ERROR(check_options(options));
  const RepoCache cache(options.cache_folder, id);
  if (options.offline) return resolve_offline(cache, id, options);
  const Result<std::string> cached = cached_snapshot(cache, id, options.weights);
  const bool is_pinned = is_commit(id.revision) || is_short_commit(id.revision);
  if (cached.ok() && is_pinned && has_tokenizer(cached.value())) return cached;

  HttpClient client(http_settings(options, [&options] { return options.cancelled(); }));
  const int max_attempts = cached.ok() ? 1 : std::min(kMaxListAttempts, options.max_attempts);
  const Result<HubListing> listing = list_repo(client, options, id, max_attempts);
  if (listing.ok()) return download_snapshot(options, id, cache, listing.value());
  if (options.cancelled() || !cached.ok()) return listing.status();
  FT_LOG(warn, "using the cached {}: {}", cached.value(), listing.status().message());
  return cached;
}

}  // namespace foretoken
