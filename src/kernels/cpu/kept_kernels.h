#pragma once
#include <vector>

namespace foretoken::cpu {

// What `find` finds on this machine, looked for at the first call; one set of each type. Any
// thread. Never destroyed: a worker of a device that was given up runs until the process has ended.
template <class T>
const std::vector<T>& kept_kernels(std::vector<T> (*find)()) {
  static const auto& kernels = *new std::vector<T>(find());
  return kernels;
}

}  // namespace foretoken::cpu
