# Run as a script: writes OUTPUT, a source file with the function FUNCTION of HEADER, which returns the
# text of INPUT.
file(READ ${INPUT} text)
file(WRITE ${OUTPUT}
"#include \"${HEADER}\"

namespace foretoken {

const char* ${FUNCTION}() {
  return R\"text(${text})text\";
}

}  // namespace foretoken
")
