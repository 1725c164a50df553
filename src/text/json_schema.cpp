#include "text/json_schema.h"

#include <foretoken_text.h>

#include <list>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "text/crate_buffers.h"

namespace foretoken {
namespace {

// Clients send the same schemas again and again.
class Memory {
 public:
  std::optional<RelaxedSchema> find(const std::string& schema) {
    std::lock_guard lock(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->first != schema) continue;
      entries_.splice(entries_.begin(), entries_, entry);
      return entry->second;
    }
    return std::nullopt;
  }

  void keep(const std::string& schema, const RelaxedSchema& relaxed) {
    if (schema.size() > kMaxSize) return;
    std::lock_guard lock(mutex_);
    entries_.emplace_front(schema, relaxed);
    if (entries_.size() > kMaxEntries) entries_.pop_back();
  }

 private:
  static constexpr size_t kMaxSize = 1 << 16;
  static constexpr size_t kMaxEntries = 64;
  std::mutex mutex_;
  std::list<std::pair<std::string, RelaxedSchema>> entries_;
};

}  // namespace

Result<RelaxedSchema> relax_schema(const std::string& schema) {
  constexpr size_t kMaxSize = 1 << 20;
  if (schema.size() > kMaxSize) {
    return invalid_argument("the JSON schema has " + std::to_string(schema.size()) +
                            " bytes; at most " + std::to_string(kMaxSize) + " are possible");
  }
  static Memory memory;
  if (auto known = memory.find(schema)) return *std::move(known);
  CrateText made;
  CrateText notes;
  CrateText error;
  if (ft_schema_relax(schema.data(), schema.size(), made.out(), notes.out(), error.out()) !=
      FT_TEXT_OK) {
    return invalid_argument(error.str());
  }
  RelaxedSchema relaxed{made.str(), nlohmann::json::parse(notes.str())};
  memory.keep(schema, relaxed);
  return relaxed;
}

}  // namespace foretoken
