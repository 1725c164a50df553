# The Debian package: `cpack -G DEB` in a build folder that holds the targets foretoken and manual.
# For the latter the program prints its manual page and its completions.
set(packaging ${PROJECT_SOURCE_DIR}/packaging)
if(TARGET foretoken)
  set(generated ${PROJECT_BINARY_DIR}/manual)
  add_custom_command(OUTPUT ${generated}/foretoken.1.gz DEPENDS foretoken
    COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}
    COMMAND $<TARGET_FILE:foretoken> man > ${generated}/foretoken.1
    COMMAND $<TARGET_FILE:foretoken> completion bash > ${generated}/foretoken.bash
    COMMAND $<TARGET_FILE:foretoken> completion zsh > ${generated}/_foretoken
    COMMAND $<TARGET_FILE:foretoken> completion fish > ${generated}/foretoken.fish
    COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/CHANGELOG.md > ${generated}/changelog.gz
    COMMAND gzip -9nc ${packaging}/debian/changelog > ${generated}/changelog.Debian.gz
    COMMAND gzip -9nc ${generated}/foretoken.1 > ${generated}/foretoken.1.gz)
  add_custom_target(manual DEPENDS ${generated}/foretoken.1.gz)
  install(FILES ${generated}/foretoken.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
    COMPONENT runtime OPTIONAL)
  install(FILES ${generated}/changelog.gz ${generated}/changelog.Debian.gz
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/foretoken COMPONENT service OPTIONAL EXCLUDE_FROM_ALL)
  install(FILES ${generated}/foretoken.bash RENAME foretoken COMPONENT runtime OPTIONAL
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${generated}/_foretoken COMPONENT runtime OPTIONAL
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES ${generated}/foretoken.fish COMPONENT runtime OPTIONAL
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

install(FILES ${packaging}/systemd/foretoken.service DESTINATION lib/systemd/system
  COMPONENT service EXCLUDE_FROM_ALL)
install(FILES ${packaging}/systemd/foretoken.default DESTINATION /etc/default RENAME foretoken
  COMPONENT service EXCLUDE_FROM_ALL)
install(FILES ${packaging}/debian/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/foretoken
  COMPONENT service EXCLUDE_FROM_ALL)

set(CPACK_PACKAGE_NAME foretoken)
set(CPACK_PACKAGE_VENDOR "The Foretoken authors")
set(CPACK_PACKAGE_CONTACT "The Foretoken authors <maintainers@foretoken.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "LLM inference with speculative decoding")
set(CPACK_PACKAGE_DESCRIPTION
  "An inference engine for language models and an OpenAI-compatible server,
in which speculative decoding composes with everything.
A small model is included.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime service)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${packaging}/debian/conffiles
  ${packaging}/debian/postinst ${packaging}/debian/prerm ${packaging}/debian/postrm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
