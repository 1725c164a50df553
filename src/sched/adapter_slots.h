#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace foretoken {

// Which adapters have a place on the device, by the engine's numbers of them (from 1 on). A place
// is taken by the sequences that use its adapter; one that none uses keeps its bytes until another
// adapter needs it, the least recently used first. Engine thread only; allocates nothing after
// construction.
class AdapterSlots {
 public:
  explicit AdapterSlots(int num_slots) : slots_(static_cast<size_t>(num_slots)) {}

  int num_slots() const { return static_cast<int>(slots_.size()); }
  // Whether a further sequence of the adapter could run now.
  bool has_room(int adapter) const { return find(adapter) >= 0; }

  struct Place {
    int slot = -1;
    bool fresh = false;  // the adapter's bytes are to be brought there before it is used
  };
  // One more sequence uses the adapter; has_room(adapter).
  Place acquire(int adapter);
  // One fewer.
  void release(int slot);

 private:
  struct Slot {
    int adapter = 0;
    int num_users = 0;
    uint64_t last_use = 0;
  };

  // The adapter's place, or else the unused one that was used longest ago; -1: none.
  int find(int adapter) const;

  std::vector<Slot> slots_;
  uint64_t num_uses_ = 0;
};

}  // namespace foretoken
