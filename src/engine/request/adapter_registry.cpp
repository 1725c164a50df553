#include "engine/request/adapter_registry.h"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "model/weights/dora.h"
#include "model/weights/saved_bases.h"

namespace foretoken {

std::optional<int32_t> begin_of_adapter(const EngineAdapter& adapter,
                                        std::span<const int32_t> ids) {
  if (adapter.invocation.empty()) return 0;
  const auto last = std::ranges::find_end(ids, adapter.invocation);
  if (last.empty()) return std::nullopt;
  return static_cast<int32_t>(last.begin() - ids.begin());
}

AdapterRegistry::Entries::iterator AdapterRegistry::place_of(const std::string& name) {
  return std::ranges::find_if(entries_,
                              [&](const Entry& entry) { return entry.info.name == name; });
}

Status AdapterRegistry::check_name(const std::string& name, bool replace) const {
  const bool known =
      std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.info.name == name; });
  if (!known || replace) return {};
  return invalid_argument("the adapter '" + name +
                          "' has already been loaded; unload it, or set load_inplace to true");
}

// Before one more is kept. Of those that no request has, one that no place of the device holds
// either goes first.
Status AdapterRegistry::make_room() {
  const auto is_loaded = [](const Entry& entry) { return entry.adapter != nullptr; };
  const int64_t num_loaded = std::ranges::count_if(entries_, is_loaded);
  if (options_.max_adapters == 0 || num_loaded < options_.max_adapters) return {};
  Entry* oldest = nullptr;
  const auto order = [](const Entry& entry) {
    return std::pair(entry.adapter->num_places.load() > 0, entry.last_use);
  };
  for (Entry& entry : entries_) {
    if (!is_loaded(entry)) continue;
    const bool is_used = entry.adapter.use_count() - 1 > entry.adapter->num_places.load();
    if (!is_used && (oldest == nullptr || order(entry) < order(*oldest))) oldest = &entry;
  }
  if (oldest == nullptr) {
    return resource_exhausted("requests use " + std::to_string(num_loaded) +
                              " adapters, as many as --max-cpu-loras allows; try again when one "
                              "has ended, or raise it");
  }
  FT_LOG(info, "the adapter '{}' leaves memory until a request names it (--max-cpu-loras {})",
         oldest->info.name, options_.max_adapters);
  oldest->adapter = nullptr;
  return {};
}

Status AdapterRegistry::keep(Entry* entry, std::shared_ptr<EngineAdapter> adapter) {
  if (num_loads_ == INT_MAX)
    return resource_exhausted("too many adapters were loaded; start again");
  adapter->number = ++num_loads_;
  entry->info = adapter->info;
  entry->adapter = std::move(adapter);
  entry->last_use = ++num_uses_;
  return {};
}

Result<std::shared_ptr<EngineAdapter>> AdapterRegistry::read(const LoraModule& module) const {
  FT_ASSIGN_OR_RETURN(LoraAdapter adapter,
                      read_peft_adapter(module.path, pool_.dtype(), options_.max_rank));
  if (options_.model) {
    FT_ASSIGN_OR_RETURN(const std::vector<LoraBase> changed,
                        changed_bases(module.path, adapter, *options_.model));
    FT_RETURN_IF_ERROR(read_wholes(module.path, changed, &adapter));
    FT_RETURN_IF_ERROR(read_token_rows(module.path, *options_.model, &adapter));
    FT_RETURN_IF_ERROR(read_magnitudes(module.path, *options_.model, &adapter));
  }
  auto made = std::make_shared<EngineAdapter>();
  made->info = {module.name, module.path, module.base_model_name};
  made->invocation = adapter.invocation;
  Result<std::unique_ptr<LoraImage>> image = pool_.make_image(adapter);
  if (!image.ok()) {
    return Status(image.status().code(), module.path + ": " + image.status().message());
  }
  made->image = std::move(image).value();
  if (options_.for_ranks) made->packed = pack_adapter(adapter);
  FT_LOG(info, "loaded the adapter '{}' from {}: {} linear layers, rank {}, {} matrices of its own",
         module.name, module.path, adapter.linears.size(), adapter.max_rank(),
         adapter.wholes.size());
  return made;
}

Status AdapterRegistry::load(const LoraModule& module, bool replace) {
  {
    const std::lock_guard lock(mutex_);
    FT_RETURN_IF_ERROR(check_name(module.name, replace));
  }
  FT_ASSIGN_OR_RETURN(std::shared_ptr<EngineAdapter> made, read(module));
  const std::lock_guard lock(mutex_);
  // Another load may have been quicker.
  FT_RETURN_IF_ERROR(check_name(module.name, replace));
  auto known = place_of(module.name);
  if (known == entries_.end() || known->adapter == nullptr) {
    FT_RETURN_IF_ERROR(make_room());
  }
  if (known != entries_.end()) return keep(&*known, std::move(made));
  Entry entry;
  FT_RETURN_IF_ERROR(keep(&entry, std::move(made)));
  entries_.push_back(std::move(entry));
  return {};
}

// With the names of those that are there.
Status AdapterRegistry::missing(const std::string& name) const {
  std::string names;
  for (const Entry& entry : entries_) {
    names += (names.empty() ? "loaded are '" : "', '") + entry.info.name;
  }
  return not_found("the adapter '" + name + "' cannot be found; " +
                   (names.empty() ? std::string("none is loaded") : names + "'"));
}

Status AdapterRegistry::unload(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto known = place_of(name);
  if (known == entries_.end()) return missing(name);
  entries_.erase(known);
  FT_LOG(info, "unloaded the adapter '{}'", name);
  return {};
}

std::vector<AdapterInfo> AdapterRegistry::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<AdapterInfo> infos;
  for (const Entry& entry : entries_) infos.push_back(entry.info);
  return infos;
}

Result<std::shared_ptr<const EngineAdapter>> AdapterRegistry::find(const std::string& name) {
  LoraModule module;
  {
    const std::lock_guard lock(mutex_);
    const auto known = place_of(name);
    if (known == entries_.end()) return missing(name);
    known->last_use = ++num_uses_;
    if (known->adapter != nullptr) return known->adapter;
    module = {known->info.name, known->info.path, known->info.base_model_name};
  }
  FT_ASSIGN_OR_RETURN(std::shared_ptr<EngineAdapter> made, read(module));
  const std::lock_guard lock(mutex_);
  const auto known = place_of(name);
  // It was unloaded meanwhile, or another request was quicker.
  if (known == entries_.end()) return missing(name);
  if (known->adapter != nullptr) return known->adapter;
  if (known->info.path != module.path) {
    return resource_exhausted("the adapter '" + name + "' is being replaced; try again");
  }
  FT_RETURN_IF_ERROR(make_room());
  FT_RETURN_IF_ERROR(keep(&*known, std::move(made)));
  return known->adapter;
}

void ResidentAdapters::put(int slot, std::shared_ptr<const EngineAdapter> adapter) {
  Slot& place = slots_[static_cast<size_t>(slot)];
  if (adapter != nullptr) ++adapter->num_places;
  if (place.before != nullptr) --place.before->num_places;
  place.before = std::exchange(place.now, std::move(adapter));
}

}  // namespace foretoken
