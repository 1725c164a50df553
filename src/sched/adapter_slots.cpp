#include "sched/adapter_slots.h"

#include "base/check.h"

namespace foretoken {

int AdapterSlots::find(int adapter) const {
  int oldest = -1;
  for (int i = 0; i < num_slots(); ++i) {
    const Slot& slot = slots_[static_cast<size_t>(i)];
    if (slot.adapter == adapter) return i;
    const bool older = oldest < 0 || slot.last_use < slots_[static_cast<size_t>(oldest)].last_use;
    if (slot.num_users == 0 && older) oldest = i;
  }
  return oldest;
}

AdapterSlots::Place AdapterSlots::acquire(int adapter) {
  FT_CHECK(adapter > 0);
  const int found = find(adapter);
  FT_CHECK(found >= 0);
  Slot& slot = slots_[static_cast<size_t>(found)];
  const Place place{found, slot.adapter != adapter};
  slot.adapter = adapter;
  ++slot.num_users;
  slot.last_use = ++num_uses_;
  return place;
}

void AdapterSlots::release(int slot) {
  FT_CHECK(slots_[static_cast<size_t>(slot)].num_users > 0);
  --slots_[static_cast<size_t>(slot)].num_users;
}

}  // namespace foretoken
