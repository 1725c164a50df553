#include "gguf/vocabulary/sentencepiece_file.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

namespace foretoken {
namespace {

using Piece = SentencePieceModel::Piece;

// A field of a protocol buffer: varints and words in `number`, all else in `bytes`.
struct WireField {
  uint32_t id = 0;
  uint64_t number = 0;
  std::string_view bytes;
};

// Walks over the fields of a message (protobuf.dev/programming-guides/encoding).
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  // None at the end, and from the first broken field on: then `ok` is false.
  std::optional<WireField> next() {
    if (rest_.empty() || !ok_) return std::nullopt;
    const uint64_t key = varint();
    WireField field;
    field.id = static_cast<uint32_t>(key >> 3);
    switch (key & 7) {
      case 0:
        field.number = varint();
        break;
      case 1:
        field.number = word(8);
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        field.number = word(4);
        break;
      default:
        ok_ = false;
    }
    if (!ok_) return std::nullopt;
    return field;
  }
  bool ok() const { return ok_; }

 private:
  std::string_view take(uint64_t count) {
    ok_ = ok_ && count <= rest_.size();
    if (!ok_) return {};
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::string_view byte = take(1);
      if (byte.empty()) return 0;
      const auto bits = static_cast<unsigned char>(byte[0]);
      value |= uint64_t{bits & 0x7fU} << shift;
      if (bits < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  uint64_t word(size_t count) {
    const std::string_view bytes = take(count);
    uint64_t value = 0;
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }

  std::string_view rest_;
  bool ok_ = true;
};

bool parse_piece(std::string_view bytes, Piece* piece) {
  WireReader reader(bytes);
  while (const auto field = reader.next()) {
    if (field->id == 1) piece->text = field->bytes;
    if (field->id == 2) piece->score = std::bit_cast<float>(static_cast<uint32_t>(field->number));
    if (field->id == 3) {
      if (field->number < 1 || field->number > 6) return false;
      piece->type = static_cast<SentencePieceModel::PieceType>(field->number);
    }
  }
  return reader.ok() && std::isfinite(piece->score);
}

bool parse_trainer(std::string_view bytes, SentencePieceModel* model) {
  WireReader reader(bytes);
  while (const auto field = reader.next()) {
    if (field->id == 3) {
      if (field->number < 1 || field->number > 4) return false;
      model->kind = static_cast<SentencePieceModel::Kind>(field->number);
    }
    if (field->id == 24) model->whitespace_is_suffix = field->number != 0;
    if (field->id == 35) model->byte_fallback = field->number != 0;
  }
  return reader.ok();
}

bool parse_normalizer(std::string_view bytes, SentencePieceModel* model) {
  WireReader reader(bytes);
  while (const auto field = reader.next()) {
    if (field->id == 2) model->charsmap = field->bytes;
    if (field->id == 3) model->add_dummy_prefix = field->number != 0;
    if (field->id == 4) model->remove_extra_whitespaces = field->number != 0;
    if (field->id == 5) model->escape_whitespaces = field->number != 0;
  }
  return reader.ok();
}

bool parse_model(std::string_view bytes, SentencePieceModel* model) {
  WireReader reader(bytes);
  while (const auto field = reader.next()) {
    if (field->id == 1 && !parse_piece(field->bytes, &model->pieces.emplace_back())) return false;
    if (field->id == 2 && !parse_trainer(field->bytes, model)) return false;
    if (field->id == 3 && !parse_normalizer(field->bytes, model)) return false;
  }
  return reader.ok() && !model->pieces.empty();
}

}  // namespace

bool is_sentencepiece_file(std::string_view bytes) {
  // A piece, which begins with its text or its score.
  WireReader reader(bytes);
  const auto first = reader.next();
  Piece piece;
  return first && first->id == 1 && !first->bytes.empty() && parse_piece(first->bytes, &piece);
}

Result<SentencePieceModel> parse_sentencepiece_file(std::string_view bytes,
                                                    const std::string& where) {
  SentencePieceModel model;
  if (parse_model(bytes, &model)) return model;
  return invalid_argument(where +
                          " is no whole SentencePiece model; the file is damaged or incomplete, "
                          "fetch it again");
}

}  // namespace foretoken
