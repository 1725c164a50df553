# The labels of the unit tests, set each time that ctest has discovered them; folders are `folders`.
#
# tests/<folder>/labels.cmake may say:
#   sanitizers   asan, tsan or both: what .ci/run runs the folder's fast tests under
#   slow         regular expressions of names (folder/suite.test/parameter) that take long: no
#                sanitizer runs them
# A test is `slow` or `fast`, and bears the names of its sanitizers. A folder without the file has no
# sanitizer, and its tests are fast.
foreach(folder IN LISTS folders)
  set(sanitizers "")
  set(slow "")
  include(${CMAKE_CURRENT_LIST_DIR}/${folder}/labels.cmake OPTIONAL)
  list(JOIN slow "|" slow_names)
  set(slow_tests "")
  set(fast_tests "")
  foreach(test IN LISTS test_${folder}_TESTS)
    if(slow AND test MATCHES "${slow_names}")
      list(APPEND slow_tests ${test})
    else()
      list(APPEND fast_tests ${test})
    endif()
  endforeach()
  if(slow_tests)
    set_tests_properties(${slow_tests} PROPERTIES LABELS slow)
  endif()
  if(fast_tests)
    set_tests_properties(${fast_tests} PROPERTIES LABELS "fast;${sanitizers}")
  endif()
endforeach()
