# Several sources are compiled as one where CMAKE_UNITY_BUILD says so: most of the time goes into the
# headers they share. Files of one target that give the same name to what is theirs alone cannot be
# joined, and those that take long by themselves should not.
# The action path crosses many small files of src: the compiler inlines across those that are joined.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD ON)
endif()
if(NOT DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 64)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # It takes what comes from an #include for a header.
  target_compile_options(weir_compile_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()

# Compiles the files of this folder that match a regular expression by themselves.
macro(weir_compile_apart expression)
  set(weir_apart ${ARGN})
  list(FILTER weir_apart INCLUDE REGEX ${expression})
  set_source_files_properties(${weir_apart} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endmacro()
