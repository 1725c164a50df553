#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// One of several pieces of bytes that a file was cut into because hosts limit sizes, by the name
// that tools give it: x.gguf.part1of2, x.gguf-split-a, x.safetensors.part-aa, x.gguf.001. Parts of
// split GGUF files, which are files of their own, and shards are none.
struct FilePiece {
  std::string whole;  // the name or path of what was cut
  std::string rest;   // what the piece's name has behind it
};
std::optional<FilePiece> file_piece(std::string_view path);

// How to join the pieces, as a command for a shell: "cat x.gguf.part* > x.gguf".
std::string joining_command(const FilePiece& piece);

// The pieces of GGUF files among `names`, in their order.
std::vector<std::string> gguf_pieces(const std::vector<std::string>& names);

}  // namespace foretoken
