#pragma once
#include <span>
#include <string_view>

#include "device/device.h"

namespace foretoken {

// What holds of every device of a type, whether one is here or not.
struct DeviceTraits {
  DeviceType type;
  const char* name;       // as --device takes it
  const char* title;      // in a sentence
  bool exchanges_by_mpi;  // its ranks' bytes can go through MPI
};

// One row for each type.
std::span<const DeviceTraits> device_types();

const DeviceTraits& device_traits(DeviceType type);

// Null where no type has the name.
const DeviceTraits* find_device_type(std::string_view name);

}  // namespace foretoken
