# foretoken_text_crate: the static library of text-crate/, built with cargo, or a prebuilt archive
# named by FORETOKEN_TEXT_LIB for machines without cargo.
set(text_crate_dir ${CMAKE_CURRENT_LIST_DIR}/../text-crate)
get_filename_component(text_crate_dir ${text_crate_dir} ABSOLUTE)

add_library(foretoken_text_crate STATIC IMPORTED GLOBAL)
target_include_directories(foretoken_text_crate INTERFACE ${text_crate_dir})
target_link_libraries(foretoken_text_crate INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)

if(FORETOKEN_TEXT_LIB)
  if(NOT EXISTS ${FORETOKEN_TEXT_LIB})
    message(FATAL_ERROR "FORETOKEN_TEXT_LIB names ${FORETOKEN_TEXT_LIB}, which does not exist")
  endif()
  set_target_properties(foretoken_text_crate PROPERTIES IMPORTED_LOCATION ${FORETOKEN_TEXT_LIB})
  return()
endif()

find_program(CARGO cargo HINTS $ENV{HOME}/.cargo/bin)
if(NOT CARGO)
  message(FATAL_ERROR "cargo not found: install Rust 1.87 or newer (Debian: rustc-web and cargo-web), "
    "or set FORETOKEN_TEXT_LIB to a prebuilt libforetoken_text.a")
endif()

# Kept in the cache: a later configure run may come without the environment variable.
if(DEFINED ENV{FORETOKEN_CARGO_TARGET_DIR})
  set(FORETOKEN_CARGO_TARGET_DIR $ENV{FORETOKEN_CARGO_TARGET_DIR} CACHE PATH
    "Cargo's output folder (empty: inside the build folder)" FORCE)
endif()
if(FORETOKEN_CARGO_TARGET_DIR)
  set(cargo_target_dir ${FORETOKEN_CARGO_TARGET_DIR})
else()
  set(cargo_target_dir ${CMAKE_BINARY_DIR}/cargo)
endif()
set(text_crate_archive ${cargo_target_dir}/release/libforetoken_text.a)

file(GLOB_RECURSE text_crate_sources CONFIGURE_DEPENDS ${text_crate_dir}/src/*.rs)
# The compiler flags of this build (sanitizers above all) are not for the crate's build scripts.
# What says that cargo was asked is this build folder's own: the archive may be that of several, and only
# changes when cargo makes another.
set(text_crate_stamp ${CMAKE_BINARY_DIR}/text_crate.stamp)
add_custom_command(
  OUTPUT ${text_crate_stamp}
  BYPRODUCTS ${text_crate_archive}
  COMMAND ${CMAKE_COMMAND} -E env --unset=CFLAGS --unset=CXXFLAGS --unset=CPPFLAGS --unset=LDFLAGS
          CARGO_TARGET_DIR=${cargo_target_dir} ${CARGO} build --release --locked --quiet
  COMMAND ${CMAKE_COMMAND} -E touch ${text_crate_stamp}
  WORKING_DIRECTORY ${text_crate_dir}
  DEPENDS ${text_crate_sources} ${text_crate_dir}/Cargo.toml ${text_crate_dir}/Cargo.lock
  COMMENT "Building the text crate with cargo"
  VERBATIM)
add_custom_target(foretoken_text_crate_build DEPENDS ${text_crate_stamp})
set_target_properties(foretoken_text_crate PROPERTIES IMPORTED_LOCATION ${text_crate_archive})
add_dependencies(foretoken_text_crate foretoken_text_crate_build)
