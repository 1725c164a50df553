#pragma once
#include <filesystem>
#include <vector>

namespace foretoken {

// Folders that may hold models/ and the other bundled files, the most likely first. Each program
// and the Python module have their own.
std::vector<std::filesystem::path> bundled_roots();

}  // namespace foretoken
