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
  // A table of step times takes it a second or two, beside which weights take as long: a server
  // measures before its first request, with which a load may begin that never pauses.
  bool measures_at_start;
};

// One row for each type.
std::span<const DeviceTraits> device_types();

const DeviceTraits& device_traits(DeviceType type);

// Null where no type has the name.
const DeviceTraits* find_device_type(std::string_view name);

}  // namespace foretoken
