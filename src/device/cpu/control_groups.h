#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace foretoken::cpu {

// The folders in which the kernel tells what control groups leave to this process, as containers
// limit it: of its own group and of those above, of versions 1 (the hierarchy of `controller`:
// "cpu", "memory") and 2. Not all need to be there: inside a container the group's own path may not
// be mounted, and the root then is the container's group. `groups`: the text of /proc/self/cgroup;
// `root`: where the hierarchies are mounted.
std::vector<std::filesystem::path> group_folders(const std::string& controller,
                                                 const std::filesystem::path& groups,
                                                 const std::filesystem::path& root);

}  // namespace foretoken::cpu
