# Installs BINARY_DIR into a fresh prefix, builds examples/generate against it and runs it.
set(work ${BINARY_DIR}/install-test)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "'${ARGV}' ended with ${result}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BINARY_DIR} --prefix ${work}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/examples/generate -B ${work}/build
    -DCMAKE_PREFIX_PATH=${work}/prefix -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${work}/build)
file(GLOB models ${SOURCE_DIR}/models/*/chat_template.jinja ${SOURCE_DIR}/models/*/config.json)
list(GET models 0 model)
get_filename_component(model ${model} DIRECTORY)
run(${work}/build/generate ${model} "Once upon a time")
message("${output}")
if(NOT output MATCHES "drafts accepted")
  message(FATAL_ERROR "the example's output lacks its last line")
endif()
