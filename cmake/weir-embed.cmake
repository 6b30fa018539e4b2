# Texts as constants of programs.
#
#   weir_embed_kernels(TARGET kernels.wk...)
#
# makes a header kernels.wk.h that the sources of the target may include: a constant
# `static const char kernels_wk[]` with the text of the file, named after it with _ for what is no
# letter or digit.

# Writes such a header.
function(weir_write_embedded input output)
  get_filename_component(name ${input} NAME)
  string(MAKE_C_IDENTIFIER ${name} constant)
  file(READ ${input} text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
  file(WRITE ${output} "/* The text of ${name}. */\nstatic const char ${constant}[] =\n    \"${text}\";\n")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  weir_write_embedded(${INPUT} ${OUTPUT})
  return()
endif()

set_property(GLOBAL PROPERTY WEIR_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(weir_embed_kernels target)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}_kernels)
  foreach(file ${ARGN})
    get_filename_component(input ${file} ABSOLUTE)
    get_filename_component(name ${file} NAME)
    get_property(script GLOBAL PROPERTY WEIR_EMBED_SCRIPT)
    add_custom_command(OUTPUT ${folder}/${name}.h
      COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${folder}/${name}.h -P ${script}
      DEPENDS ${input} ${script} COMMENT "Embedding ${name}" VERBATIM)
    target_sources(${target} PRIVATE ${folder}/${name}.h)
  endforeach()
  target_include_directories(${target} PRIVATE ${folder})
endfunction()
