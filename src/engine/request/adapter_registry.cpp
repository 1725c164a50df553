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

AdapterRegistry::Adapters::const_iterator AdapterRegistry::place_of(const std::string& name) const {
  return std::ranges::find_if(adapters_,
                              [&](const auto& adapter) { return adapter->info.name == name; });
}

Status AdapterRegistry::check_name(const std::string& name, bool replace) const {
  const bool known = place_of(name) != adapters_.end();
  if (known && !replace) {
    return invalid_argument("the adapter '" + name +
                            "' has already been loaded; unload it, or set load_inplace to true");
  }
  const auto most = static_cast<size_t>(options_.max_adapters);
  if (known || most == 0 || adapters_.size() < most) return {};
  return resource_exhausted(std::to_string(adapters_.size()) +
                            " adapters are loaded, as many as --max-cpu-loras allows; unload one, "
                            "or raise it");
}

Status AdapterRegistry::load(const LoraModule& module, bool replace) {
  {
    const std::lock_guard lock(mutex_);
    FT_RETURN_IF_ERROR(check_name(module.name, replace));
  }
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
    return {image.status().code(), module.path + ": " + image.status().message()};
  }
  made->image = std::move(image).value();
  if (options_.for_ranks) made->packed = pack_adapter(adapter);
  const std::lock_guard lock(mutex_);
  // Another load may have been quicker.
  FT_RETURN_IF_ERROR(check_name(module.name, replace));
  if (num_loads_ == INT_MAX)
    return resource_exhausted("too many adapters were loaded; start again");
  made->number = ++num_loads_;
  const auto known = place_of(module.name);
  if (known == adapters_.end()) {
    adapters_.push_back(std::move(made));
  } else {
    adapters_[static_cast<size_t>(known - adapters_.begin())] = std::move(made);
  }
  FT_LOG(info, "loaded the adapter '{}' from {}: {} linear layers, rank {}, {} matrices of its own",
         module.name, module.path, adapter.linears.size(), adapter.max_rank(),
         adapter.wholes.size());
  return {};
}

Status AdapterRegistry::unload(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto known = place_of(name);
  if (known == adapters_.end()) return not_found("the adapter '" + name + "' cannot be found");
  adapters_.erase(known);
  FT_LOG(info, "unloaded the adapter '{}'", name);
  return {};
}

std::vector<AdapterInfo> AdapterRegistry::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<AdapterInfo> infos;
  for (const auto& adapter : adapters_) infos.push_back(adapter->info);
  return infos;
}

std::shared_ptr<const EngineAdapter> AdapterRegistry::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto known = place_of(name);
  return known == adapters_.end() ? nullptr : *known;
}

void ResidentAdapters::put(int slot, std::shared_ptr<const EngineAdapter> adapter) {
  Slot& place = slots_[static_cast<size_t>(slot)];
  place.before = std::exchange(place.now, std::move(adapter));
}

}  // namespace foretoken
