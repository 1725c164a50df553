#pragma once
#include <span>
#include <string>
#include <string_view>

#include "gguf/hf_names.h"

namespace foretoken {

// Part of gguf_architectures: Muse Glimmer and smaller families that llama.cpp's
// converter has learned of late or few files are of (Orion, Maincoder, openPangu, Xverse).
std::span<const GgufArchitecture> later_gguf_architectures();

// What stands in the way of files of an architecture that llama.cpp knows and that is not read, as
// the rest of a sentence with its remedy; empty for one that nobody knows.
std::string why_not_read(std::string_view architecture);

}  // namespace foretoken
