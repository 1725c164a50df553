#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foretoken {

// What a SentencePiece model (tokenizer.model) holds: the fields of its protocol buffer,
// sentencepiece_model.proto, that tokens depend on.
struct SentencePieceModel {
  enum class Kind : uint8_t { kUnigram = 1, kBpe = 2, kWord = 3, kChar = 4 };
  enum class PieceType : uint8_t {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,
    kUserDefined = 4,
    kUnused = 5,
    kByte = 6
  };
  struct Piece {
    std::string text;
    float score = 0;
    PieceType type = PieceType::kNormal;
  };

  std::vector<Piece> pieces;  // by id
  Kind kind = Kind::kUnigram;
  bool byte_fallback = false;
  bool whitespace_is_suffix = false;
  std::string charsmap;  // of the normalizer, empty for none
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

// Whether bytes begin like such a file.
bool is_sentencepiece_file(std::string_view bytes);

// InvalidArgument, which begins with `where`, for a broken file or one without pieces.
Result<SentencePieceModel> parse_sentencepiece_file(std::string_view bytes,
                                                    const std::string& where);

}  // namespace foretoken
