# Run as a script: writes OUTPUT, a source file that holds the files of FOLDER
# (serve/routes/page_files.h).
# The bytes become string literals: a compiler reads those many times faster than lists of numbers.
set(type_of.html "text/html; charset=utf-8")
set(type_of.css "text/css; charset=utf-8")
set(type_of.js "text/javascript; charset=utf-8")
set(type_of.svg "image/svg+xml")
set(type_of.txt "text/plain; charset=utf-8")

string(REPEAT "." 128 line_of_hex)
file(GLOB_RECURSE files LIST_DIRECTORIES false RELATIVE ${FOLDER} ${FOLDER}/*)
list(FILTER files EXCLUDE REGEX "\\.md$")
set(texts "")
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(suffix ${file} LAST_EXT)
  set(type "${type_of${suffix}}")
  if(type STREQUAL "")
    message(FATAL_ERROR "${FOLDER}/${file}: no content type is known for '${suffix}'; add it to cmake/page.cmake")
  endif()
  if(file STREQUAL "index.html")
    set(path "/")
  else()
    set(path "/page/${file}")
  endif()
  string(MAKE_C_IDENTIFIER "${file}" name)
  file(SHA256 ${FOLDER}/${file} hash)
  string(SUBSTRING ${hash} 0 32 tag)
  file(READ ${FOLDER}/${file} hex HEX)
  string(REGEX REPLACE "(${line_of_hex})" "\\1\"\n\"" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${hex}")
  string(APPEND texts "constexpr char ${name}[] =\n\"${bytes}\";\n")
  string(APPEND rows
    "    {\"${path}\", \"${type}\", \"\\\"${tag}\\\"\", {${name}, sizeof(${name}) - 1}},\n")
endforeach()

file(WRITE ${OUTPUT}
"#include \"serve/routes/page_files.h\"

namespace foretoken {
namespace {

${texts}
constexpr PageFile files[] = {
${rows}};

}  // namespace

std::span<const PageFile> page_files() {
  return files;
}

}  // namespace foretoken
")
