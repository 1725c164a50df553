#pragma once

namespace foretoken {

/// The checkout that the tests were compiled from, and the folder of the build, as absolute paths.
/// Only folders.cpp is compiled with these paths, so that the other tests are the same in every
/// checkout.
extern const char* const kSourceFolder;
extern const char* const kBinaryFolder;

}  // namespace foretoken
