#include "engine/measure/step_time_cache.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "base/new_file.h"
#include "spec/cost_table_file.h"

namespace foretoken {
namespace {

// FNV-1a: the same name for a key in every build.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

std::string hex_of(uint64_t value) {
  std::string text(16, '0');
  for (size_t i = text.size(); i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

Status write_whole(const std::string& folder, const std::string& path, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return invalid_argument(folder + ": " + error.message());
  const auto bytes = static_cast<int64_t>(text.size());
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file, NewFile::create(path, bytes, true));
  FT_RETURN_IF_ERROR(file->append(text.data(), bytes));
  return file->commit();
}

}  // namespace

StepTimeCache::StepTimeCache(std::string folder, std::string key)
    : folder_(std::move(folder)), key_(std::move(key)) {
  if (folder_.empty()) return;
  path_ = (std::filesystem::path(folder_) / (hex_of(hash_of(key_)) + ".json")).string();
}

std::optional<CostTable> StepTimeCache::find(std::span<const std::string> drafters) const {
  std::error_code error;
  if (folder_.empty() || !std::filesystem::exists(path_, error)) return std::nullopt;
  Result<CostTable> times = read_cost_table(path_, drafters);
  if (times.ok() && times.value().measured_on == key_) return std::move(times).value();
  FT_LOG(warn, "step times: {} is passed over: {}", path_,
         times.ok() ? "it was measured on something else" : times.status().message());
  return std::nullopt;
}

void StepTimeCache::keep(CostTable times) const {
  if (folder_.empty()) return;
  times.measured_on = key_;
  const Status status = write_whole(folder_, path_, cost_table_to_json(times));
  if (status.ok()) {
    FT_LOG(info, "step times: kept in {}", path_);
  } else {
    FT_LOG(warn, "step times: not kept, so that the next start measures again: {}",
           status.message());
  }
}

std::string default_step_time_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  std::filesystem::path cache = variable("XDG_CACHE_HOME");
  if (!cache.is_absolute()) {
    const std::filesystem::path home = variable("HOME");
    if (home.empty()) return {};
    cache = home / ".cache";
  }
  return (cache / "foretoken" / "step-times").string();
}

}  // namespace foretoken
