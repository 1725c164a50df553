#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "apps/command_run.h"

namespace foretoken {
namespace {

// Exit code of a check by another program, which reads `text` from a file; -1 where the program is
// not installed.
int check_with(const std::string& program, const std::string& arguments, const std::string& text) {
  if (std::system(("command -v " + program + " >/dev/null").c_str()) != 0) return -1;
  const test::ScratchFolder scratch;
  const std::string file = scratch.file("text");
  std::ofstream(file) << text;
  return std::system((program + " " + arguments + " " + file + " >/dev/null").c_str());
}

TEST(Manual, TheManualPageNamesEveryCommandAndParses) {
  const CommandResult result = run_command({"man"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part :
       {".TH FORETOKEN 1", ".SS foretoken generate\n", ".SS foretoken bench latency\n",
        "\\-\\-speculative\\-config", "fcfs|priority", ".SH EXIT STATUS"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(result.out.find(".SS foretoken completion"), std::string::npos);
  const int code = check_with("groff", "-man -Tutf8 -ww", result.out);
  EXPECT_TRUE(code == 0 || code == -1);
}

TEST(Manual, HiddenCommandsAreNotInTheHelp) {
  const CommandResult result = run_command({"--help"});
  EXPECT_NE(result.out.find("generate"), std::string::npos);
  EXPECT_EQ(result.out.find("completion"), std::string::npos);
}

TEST(Completion, EveryShellAcceptsItsScript) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const CommandResult result = run_command({"completion", shell});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find("max-num-seqs"), std::string::npos) << shell;
    const int code = check_with(shell, "-n", result.out);
    EXPECT_TRUE(code == 0 || code == -1) << shell;
  }
}

// What bash offers for the last word of a line.
std::string offered(const std::string& words) {
  const test::ScratchFolder scratch;
  const std::string script = scratch.file("completion");
  const std::string answer = scratch.file("answer");
  std::ofstream(script) << run_command({"completion", "bash"}).out << "COMP_WORDS=(" << words
                        << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_foretoken\n"
                        << "printf '%s ' \"${COMPREPLY[@]}\"\n";
  EXPECT_EQ(std::system(("bash " + script + " > " + answer).c_str()), 0);
  return read_file(answer);
}

TEST(Completion, BashOffersCommandsFlagsAndValues) {
  EXPECT_EQ(offered("foretoken gen"), "generate ");
  EXPECT_EQ(offered("foretoken bench lat"), "latency ");
  EXPECT_EQ(offered("foretoken generate --max-num-s"), "--max-num-seqs ");
  EXPECT_EQ(offered("foretoken generate --scheduling-policy ''"), "fcfs priority ");
  EXPECT_EQ(offered("foretoken generate --no-such-flag"), " ");
}

TEST(Completion, OtherShellsAreRefused) {
  const CommandResult result = run_command({"completion", "tcsh"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("'tcsh'; name bash, zsh or fish"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace foretoken
