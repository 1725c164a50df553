#include "device/resident_memory.h"

#include <unistd.h>

#include <fstream>

namespace foretoken {

int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  int64_t whole = 0;
  int64_t resident = 0;
  in >> whole >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace foretoken
