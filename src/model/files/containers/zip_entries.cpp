#include "model/files/containers/zip_entries.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "gguf/container/byte_reader.h"

namespace foretoken {
namespace {

using Bytes = std::span<const std::byte>;

// PKWARE's APPNOTE.TXT, 4.3.
constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kCentralHeader = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50;
constexpr uint32_t kEnd64Locator = 0x07064b50;
constexpr size_t kEndBytes = 22;
constexpr size_t kLocatorBytes = 20;
constexpr size_t kLocalHeaderBytes = 30;
constexpr size_t kMaxComment = 0xffff;
constexpr uint16_t kExtra64 = 1;
constexpr uint32_t kSee64 = 0xffffffff;

struct Directory {
  uint64_t offset = 0;
  uint64_t count = 0;
};

Status zip_error(const std::string& where, const std::string& why) {
  return invalid_argument(where + ": the zip archive is broken (" + why +
                          "); the file is damaged or incomplete, fetch it again");
}

std::optional<Bytes> part(Bytes file, uint64_t offset, uint64_t count) {
  if (offset > file.size() || count > file.size() - offset) return std::nullopt;
  return file.subspan(offset, count);
}

uint32_t signature_at(Bytes file, uint64_t offset) {
  const auto bytes = part(file, offset, 4);
  return bytes ? ByteReader(*bytes).number<uint32_t>() : 0;
}

// The end record is the last one, with a comment behind it at most.
std::optional<size_t> find_end(Bytes file) {
  if (file.size() < kEndBytes) return std::nullopt;
  const size_t last = file.size() - kEndBytes;
  for (size_t back = 0; back <= std::min(last, kMaxComment); ++back) {
    if (signature_at(file, last - back) == kEnd) return last - back;
  }
  return std::nullopt;
}

Result<Directory> find_directory(Bytes file, const std::string& where) {
  const std::optional<size_t> end = find_end(file);
  if (!end) return zip_error(where, "its directory is missing");
  ByteReader reader(file.subspan(*end + 8));
  reader.number<uint16_t>();  // entries on this disk
  Directory directory;
  directory.count = reader.number<uint16_t>();
  reader.number<uint32_t>();  // bytes of the directory
  directory.offset = reader.number<uint32_t>();
  const bool has_64 =
      *end >= kLocatorBytes && signature_at(file, *end - kLocatorBytes) == kEnd64Locator;
  if (!has_64) return directory;
  ByteReader locator(file.subspan(*end - kLocatorBytes + 8));
  const auto end64 = locator.number<uint64_t>();
  if (signature_at(file, end64) != kEnd64) return zip_error(where, "its end record is missing");
  const auto record = part(file, end64, 56);
  if (!record) return zip_error(where, "its end record is cut off");
  ByteReader wide(record->subspan(32));
  directory.count = wide.number<uint64_t>();
  wide.number<uint64_t>();  // bytes of the directory
  directory.offset = wide.number<uint64_t>();
  return directory;
}

// One entry of the directory; sizes may stand in an extra field.
struct CentralEntry {
  uint16_t flags = 0;
  uint16_t method = 0;
  uint64_t stored = 0;
  uint64_t header = 0;
  std::string name;
};

void read_extra(Bytes extra, uint64_t plain, CentralEntry* entry) {
  ByteReader reader(extra);
  while (reader.left() >= 4) {
    const auto id = reader.number<uint16_t>();
    const auto size = reader.number<uint16_t>();
    if (size > reader.left()) return;
    const Bytes field = extra.subspan(reader.position(), size);
    if (id == kExtra64) {
      ByteReader values(field);
      if (plain == kSee64) values.number<uint64_t>();
      if (entry->stored == kSee64) entry->stored = values.number<uint64_t>();
      if (entry->header == kSee64) entry->header = values.number<uint64_t>();
    }
    for (uint16_t i = 0; i < size; ++i) reader.number<uint8_t>();
  }
}

// Null behind the last whole entry; moves `*offset` on.
std::optional<CentralEntry> next_entry(Bytes file, uint64_t* offset) {
  const auto head = part(file, *offset, 46);
  if (!head || signature_at(file, *offset) != kCentralHeader) return std::nullopt;
  ByteReader reader(head->subspan(8));
  CentralEntry entry;
  entry.flags = reader.number<uint16_t>();
  entry.method = reader.number<uint16_t>();
  reader.number<uint64_t>();  // time, checksum
  entry.stored = reader.number<uint32_t>();
  const auto plain = reader.number<uint32_t>();
  const uint64_t name = reader.number<uint16_t>();
  const uint64_t extra = reader.number<uint16_t>();
  const uint64_t comment = reader.number<uint16_t>();
  reader.number<uint64_t>();  // disk, attributes
  entry.header = ByteReader(head->subspan(42)).number<uint32_t>();
  const auto rest = part(file, *offset + 46, name + extra + comment);
  if (!rest) return std::nullopt;
  entry.name.assign(reinterpret_cast<const char*>(rest->data()), name);
  read_extra(rest->subspan(name, extra), plain, &entry);
  *offset += 46 + name + extra + comment;
  return entry;
}

// Names and extra fields of the local header may be longer than those of the directory.
Result<ZipEntry> locate(Bytes file, const CentralEntry& entry, const std::string& where) {
  const auto header = part(file, entry.header, kLocalHeaderBytes);
  if (!header || signature_at(file, entry.header) != kLocalHeader) {
    return zip_error(where, "'" + entry.name + "' is not where its directory says");
  }
  ByteReader lengths(header->subspan(26));
  const uint64_t name = lengths.number<uint16_t>();
  const uint64_t extra = lengths.number<uint16_t>();
  const uint64_t offset = entry.header + kLocalHeaderBytes + name + extra;
  if (!part(file, offset, entry.stored)) {
    return zip_error(where, "'" + entry.name + "' goes beyond the file's end");
  }
  return ZipEntry{static_cast<int64_t>(offset), static_cast<int64_t>(entry.stored),
                  entry.method != 0 || (entry.flags & 1) != 0};
}

}  // namespace

bool is_zip(Bytes file) {
  const uint32_t signature = signature_at(file, 0);
  return signature == kLocalHeader || signature == kEnd;
}

Result<std::map<std::string, ZipEntry>> read_zip_entries(Bytes file, const std::string& where) {
  FT_ASSIGN_OR_RETURN(const Directory directory, find_directory(file, where));
  std::map<std::string, ZipEntry> entries;
  uint64_t offset = directory.offset;
  for (uint64_t i = 0; i < directory.count; ++i) {
    const std::optional<CentralEntry> entry = next_entry(file, &offset);
    if (!entry) return zip_error(where, "its directory is cut off");
    FT_ASSIGN_OR_RETURN(const ZipEntry found, locate(file, *entry, where));
    if (!entries.emplace(entry->name, found).second) {
      return zip_error(where, "'" + entry->name + "' is there twice");
    }
  }
  return entries;
}

}  // namespace foretoken
