# Run as a script: writes OUTPUT, a source file that holds the files of FOLDER (serve/page_files.h).
set(type_of.html "text/html; charset=utf-8")
set(type_of.css "text/css; charset=utf-8")
set(type_of.js "text/javascript; charset=utf-8")
set(type_of.svg "image/svg+xml")

file(GLOB files LIST_DIRECTORIES false RELATIVE ${FOLDER} ${FOLDER}/*)
set(arrays "")
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
  file(READ ${FOLDER}/${file} hex HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND arrays "constexpr char ${name}[] = {${bytes}};\n")
  string(APPEND rows "    {\"${path}\", \"${type}\", {${name}, sizeof(${name})}},\n")
endforeach()

file(WRITE ${OUTPUT}
"#include \"serve/page_files.h\"

namespace foretoken {
namespace {

${arrays}
constexpr PageFile files[] = {
${rows}};

}  // namespace

std::span<const PageFile> page_files() {
  return files;
}

}  // namespace foretoken
")
