#include "hub/file_pieces.h"

#include <algorithm>
#include <iterator>
#include <regex>

#include "base/text/ascii_text.h"

namespace foretoken {

// Of a file, in bytes; matching takes stack for each.
constexpr size_t kLongestName = 255;

std::optional<FilePiece> file_piece(std::string_view path) {
  static const std::regex kForm(
      R"((.+?)([.-]part[-_]?(\d+|[a-z]{1,2})([-_]?of[-_]?\d+)?|[.-]split[-_]?([a-z]{1,2}|\d+)|\.\d{2,3}))",
      std::regex::icase);
  // As `split` names what it writes, of files of weights alone: other names may end so, too.
  static const std::regex kLetters(R"((.+\.(gguf|safetensors|bin))[.-]?([a-z]{2}))",
                                   std::regex::icase);
  const size_t folder = path.rfind('/') + 1;
  const std::string name(path.substr(folder));
  std::smatch match;
  if (name.size() > kLongestName) return std::nullopt;
  if (!std::regex_match(name, match, kForm) && !std::regex_match(name, match, kLetters)) {
    return std::nullopt;
  }
  const std::string whole = match[1].str();
  return FilePiece{std::string(path.substr(0, folder)) + whole, name.substr(whole.size())};
}

std::string joining_command(const FilePiece& piece) {
  // Up to the count, a shell's order is that of the numbers where these have no zeros to fill them.
  size_t kept = piece.rest.find_first_of("0123456789");
  const bool has_number = kept != std::string::npos;
  if (!has_number) kept = piece.rest.find_last_of(".-_") + 1;
  const std::string all = piece.whole + piece.rest.substr(0, kept) + "*";
  const std::string in_order = has_number ? "$(ls -v " + all + ")" : all;
  return "cat " + in_order + " > " + piece.whole;
}

std::vector<std::string> gguf_pieces(const std::vector<std::string>& names) {
  std::vector<std::string> pieces;
  std::ranges::copy_if(names, std::back_inserter(pieces), [](const std::string& name) {
    const auto piece = file_piece(name);
    return piece && lower_case(piece->whole).ends_with(".gguf");
  });
  std::sort(pieces.begin(), pieces.end());
  return pieces;
}

}  // namespace foretoken
