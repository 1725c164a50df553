#include "hub/cache_folder.h"

#include <algorithm>
#include <fstream>

#include "hub/repo_id.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLeastDigits = 7;

std::vector<std::string> names_below(const fs::path& folder, bool only_folders) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (entry.is_directory(ignored) != only_folders) continue;
    names.push_back(entry.path().lexically_relative(folder).generic_string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> snapshots_of(const fs::path& repository) {
  std::vector<std::string> commits;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(repository / "snapshots", ignored)) {
    if (entry.is_directory(ignored)) commits.push_back(entry.path().filename().string());
  }
  std::sort(commits.begin(), commits.end());
  return commits;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

bool is_short_commit(const std::string& revision) {
  return revision.size() >= kLeastDigits && revision.size() < 40 &&
         is_hex(revision, revision.size());
}

std::string find_cached_commit(const fs::path& repository, const std::string& revision) {
  if (is_commit(revision)) return revision;
  std::ifstream file(repository / "refs" / revision);
  std::string commit;
  file >> commit;
  if (is_commit(commit)) return commit;
  if (!is_short_commit(revision)) return "";
  std::string found;
  for (const std::string& snapshot : snapshots_of(repository)) {
    if (!snapshot.starts_with(revision)) continue;
    if (!found.empty()) return "";
    found = snapshot;
  }
  return found;
}

std::vector<std::string> cached_revisions(const fs::path& repository) {
  std::vector<std::string> names = names_below(repository / "refs", false);
  for (const std::string& commit : snapshots_of(repository)) names.push_back(commit);
  return names;
}

Result<std::string> folder_in_cache(const std::string& folder, const std::string& revision) {
  std::error_code ignored;
  fs::path path = fs::path(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (path.filename() == "snapshots") path = path.parent_path();
  const bool is_repository =
      fs::is_directory(path / "snapshots", ignored) &&
      (fs::is_directory(path / "refs", ignored) || fs::is_directory(path / "blobs", ignored));
  if (!is_repository) return folder;
  std::string commit = find_cached_commit(path, revision.empty() ? "main" : revision);
  const std::vector<std::string> snapshots = snapshots_of(path);
  if (commit.empty() && revision.empty() && snapshots.size() == 1) commit = snapshots[0];
  const fs::path snapshot = path / "snapshots" / commit;
  if (!commit.empty() && fs::is_directory(snapshot, ignored)) return snapshot.string();
  const std::vector<std::string> known = cached_revisions(path);
  return invalid_argument(
      "the cached repository '" + path.string() + "' has no snapshot" +
      (revision.empty() ? " of main" : " of revision '" + revision + "'") +
      (known.empty() ? "; give its Hub id, so that it is fetched"
                     : "; there are " + listed(known) + ", of which --revision names one"));
}

}  // namespace foretoken
