#pragma once
#include <foretoken/config.h>
#include <foretoken/engine.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/model_files.h"
#include "model/lora_pool.h"

namespace foretoken {

// An adapter that an engine has read.
struct EngineAdapter {
  AdapterInfo info;
  int number = 0;  // no other load has had it, so that cached blocks never outlive what they mean
  std::unique_ptr<const LoraImage> image;
  std::vector<std::byte> packed;  // for other ranks (pack_adapter); empty where there are none
  std::vector<int32_t> invocation = {};    // LoraAdapter::invocation
  mutable std::atomic<int> num_places{0};  // of ResidentAdapters, which hold it

  // Ids that its embedding has, of a model that has so many.
  int32_t num_ids(int32_t of_model) const {
    return image->num_ids() > 0 ? image->num_ids() : of_model;
  }
};

// The position of a prompt from which on an adapter acts: where its invocation begins the last
// time, 0 for one that always acts. None: it does not act.
std::optional<int32_t> begin_of_adapter(const EngineAdapter& adapter, std::span<const int32_t> ids);

// The adapters of an engine by name. Thread-safe. Where more are known than the host's memory shall
// keep, the one that no request has had for the longest time leaves it, and is read from its folder
// again when a request names it.
class AdapterRegistry {
 public:
  struct Options {
    int max_rank = 16;
    int max_adapters = 0;    // in memory; 0: any number
    bool for_ranks = false;  // other ranks want them, too
    // Whose weights adapters belong to; none: they are random.
    std::optional<ModelFiles> model = {};
  };
  // `pool` outlives the registry and what it gave out.
  AdapterRegistry(const LoraPool& pool, Options options)
      : pool_(pool), options_(std::move(options)) {}

  // As of Engine; ResourceExhausted where all that memory may keep are in use. Reading happens
  // outside of the lock.
  Status load(const LoraModule& adapter, bool replace);
  Status unload(const std::string& name);
  std::vector<AdapterInfo> list() const;
  // For a request. NotFound: unknown; otherwise as of load().
  Result<std::shared_ptr<const EngineAdapter>> find(const std::string& name);

 private:
  struct Entry {
    AdapterInfo info;
    std::shared_ptr<const EngineAdapter> adapter;  // null: it left memory
    int64_t last_use = 0;
  };
  using Entries = std::vector<Entry>;

  Result<std::shared_ptr<EngineAdapter>> read(const LoraModule& module) const;
  Status check_name(const std::string& name, bool replace) const;
  Status make_room();
  Status keep(Entry* entry, std::shared_ptr<EngineAdapter> adapter);
  Status missing(const std::string& name) const;
  Entries::iterator place_of(const std::string& name);

  const LoraPool& pool_;
  const Options options_;
  mutable std::mutex mutex_;
  Entries entries_;
  int num_loads_ = 0;
  int64_t num_uses_ = 0;
};

// Keeps the adapters whose bytes are in a place of the device, for as long as copies may read them.
// One thread.
class ResidentAdapters {
 public:
  explicit ResidentAdapters(int num_slots) : slots_(static_cast<size_t>(num_slots)) {}

  // Whose bytes the place gets now; the one before stays until the place changes once more.
  void put(int slot, std::shared_ptr<const EngineAdapter> adapter);

 private:
  struct Slot {
    std::shared_ptr<const EngineAdapter> now;
    std::shared_ptr<const EngineAdapter> before;
  };
  std::vector<Slot> slots_;
};

}  // namespace foretoken
