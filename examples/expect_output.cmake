# Runs COMMAND and compares its output with the file EXPECTED.
#   cmake -DCOMMAND=program;arguments -DEXPECTED=file -P expect_output.cmake
# In the file # stands for a number that differs from run to run, a blank for one or more.
execute_process(COMMAND ${COMMAND} OUTPUT_VARIABLE output RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "ended with ${result}, expected 0")
endif()

file(READ ${EXPECTED} expected)
string(REGEX REPLACE "([][+.*^$?()|\\\\])" "\\\\\\1" pattern "${expected}")
string(REPLACE "#" "[0-9.]+" pattern "${pattern}")
string(REGEX REPLACE " +" " +" pattern "${pattern}")
if(NOT output MATCHES "^${pattern}$")
  message(FATAL_ERROR "printed\n${output}expected\n${expected}")
endif()
