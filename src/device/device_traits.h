#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "device/device.h"

namespace foretoken {

// What an engine takes where its configuration does not say how much.
struct EngineSizes {
  int num_seqs;         // sequences at once
  int64_t state_bytes;  // that the states of so many may take; beyond it, fewer sequences
  int step_tokens;
  int step_tokens_of_large_memory;  // of a step, from kLargeMemory on
};
inline constexpr int64_t kLargeMemory = int64_t{64} << 30;  // bytes of a device

// What holds of every device of a type, whether one is here or not. Folders above ask these, and
// never for a type (tools/check_questions.py).
struct DeviceTraits {
  DeviceType type;
  const char* name;   // as --device takes it
  const char* title;  // in a sentence
  // Its memory is the host's: ranks, engines and other programs on the host find the same bytes
  // free. Otherwise an engine is granted a share of what the device has.
  bool uses_host_memory;
  // It computes on the host's cores, which ranks and engines on one host divide among them.
  bool uses_host_cores;
  bool exchanges_by_mpi;  // its ranks' bytes can go through MPI
  // Attention may cut what a row sees into parts, whose results lie in a workspace until they are
  // joined.
  bool cuts_attention;
  // A table of step times takes it a second or two, beside which weights take as long: a server
  // measures before its first request, with which a load may begin that never pauses.
  bool measures_at_start;
  // A drafter that learns while it rests is called in one of so many plain steps. More than one
  // where its few kernels take about a hundredth of a step, whatever the model.
  int steps_between_lessons;
  // Its ops look rows of a weight up where they lie (Device::rows_of_weight), halves and quantised.
  bool lends_rows;
  int64_t bytes_per_second;  // that it reads weights with, at least
  EngineSizes usual;
};

// One row for each type.
std::span<const DeviceTraits> device_types();

const DeviceTraits& device_traits(DeviceType type);

// Of all types, as a sentence lists them: "cpu or cuda".
std::string device_names();

// Null where no type has the name.
const DeviceTraits* find_device_type(std::string_view name);

}  // namespace foretoken
