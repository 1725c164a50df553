#include "support/folders.h"

namespace foretoken {

constinit const char* const kSourceFolder = FORETOKEN_SOURCE_DIR;
constinit const char* const kBinaryFolder = FORETOKEN_BINARY_DIR;

}  // namespace foretoken
