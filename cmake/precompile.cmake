# Large headers are read once for a target where WEIR_PRECOMPILE says so, for targets of many sources
# that are not joined. Sources include what they use all the same: without it they compile.
option(WEIR_PRECOMPILE "Precompile headers" OFF)

# weir_precompile(TARGET "<header>"...)
function(weir_precompile target)
  if(WEIR_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()
