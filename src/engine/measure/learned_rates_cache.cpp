#include "engine/measure/learned_rates_cache.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/files/text_file.h"
#include "engine/measure/cache_file.h"
#include "spec/learned_rates_file.h"

namespace foretoken {
namespace {

std::string acceptance_folder(const std::string& folder) {
  return folder.empty() ? folder : (std::filesystem::path(folder) / "acceptance").string();
}

Status check_learned(const std::string& path, const LearnedRates& learned,
                     const std::string& learned_on, std::span<const LearnedDrafter> drafters) {
  if (learned.learned_on != learned_on) {
    return invalid_argument(path +
                            " was learned with other files, another build or another machine");
  }
  const auto same = [](const LearnedDrafter& a, const LearnedDrafter& b) {
    return a.name == b.name && a.max_draft_tokens == b.max_draft_tokens;
  };
  if (!std::equal(learned.drafters.begin(), learned.drafters.end(), drafters.begin(),
                  drafters.end(), same)) {
    return invalid_argument(path + " was learned with other drafters");
  }
  return {};
}

Result<LearnedRates> read_learned(const std::string& path) {
  const Result<std::string> json = read_text_file(path);
  if (!json.ok()) return invalid_argument(path + " cannot be read; check its permissions");
  return parse_learned_rates(json.value(), path);
}

}  // namespace

LearnedRatesCache::LearnedRatesCache(const std::string& folder, const std::string& name,
                                     const std::string& stamp)
    : learned_on_(name + "; " + stamp), path_(cache_path(acceptance_folder(folder), name)) {}

std::optional<LearnedRates> LearnedRatesCache::find(
    std::span<const LearnedDrafter> drafters) const {
  std::error_code error;
  if (path_.empty() || !std::filesystem::exists(path_, error)) return std::nullopt;
  Result<LearnedRates> learned = read_learned(path_);
  const Status status = learned.ok() ? check_learned(path_, learned.value(), learned_on_, drafters)
                                     : learned.status();
  if (status.ok()) return std::move(learned).value();
  tell_passed_over(status, "acceptance rates", "learns");
  return std::nullopt;
}

void LearnedRatesCache::keep(LearnedRates learned) const {
  if (path_.empty()) return;
  tell_kept(path_, keep_quietly(std::move(learned)), "acceptance rates", "learns");
}

Status LearnedRatesCache::keep_quietly(LearnedRates learned) const {
  if (path_.empty()) return {};
  learned.learned_on = learned_on_;
  return write_cache_file(path_, learned_rates_to_json(learned));
}

std::string stamp_of_files(const std::string& model) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  const auto note = [&files](const fs::path& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return;
    const auto size = fs::file_size(path, error);
    const auto time = fs::last_write_time(path, error).time_since_epoch().count();
    files.push_back(path.filename().string() + " " + std::to_string(size) + " " +
                    std::to_string(time));
  };
  std::error_code error;
  note(model);
  for (fs::directory_iterator entry(model, error), end; !error && entry != end;
       entry.increment(error)) {
    note(entry->path());
  }
  std::sort(files.begin(), files.end());
  std::string stamp;
  for (const std::string& file : files) stamp += (stamp.empty() ? "" : ", ") + file;
  return stamp;
}

}  // namespace foretoken
