#include "engine/measure/step_time_cache.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "engine/measure/cache_file.h"
#include "spec/cost_table_file.h"

namespace foretoken {

StepTimeCache::StepTimeCache(std::string folder, std::string key)
    : folder_(std::move(folder)), key_(std::move(key)), path_(cache_path(folder_, key_)) {}

std::optional<CostTable> StepTimeCache::find(std::span<const std::string> drafters) const {
  std::error_code error;
  if (folder_.empty() || !std::filesystem::exists(path_, error)) return std::nullopt;
  Result<CostTable> times = read_cost_table(path_, drafters, path_);
  if (times.ok() && times.value().measured_on == key_) return std::move(times).value();
  tell_passed_over(
      times.ok() ? invalid_argument(path_ + " was measured on something else") : times.status(),
      "step times", "measures");
  return std::nullopt;
}

void StepTimeCache::keep(CostTable times) const {
  if (folder_.empty()) return;
  times.measured_on = key_;
  tell_kept(path_, write_cache_file(path_, cost_table_to_json(times)), "step times", "measures");
}

std::string hash_of_times(CostTable times) {
  times.measured_on.clear();
  return text_hash(cost_table_to_json(times));
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
