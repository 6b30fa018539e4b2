# What every target of the tree is compiled with.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()

add_library(weir_compile_options INTERFACE)
target_compile_options(weir_compile_options INTERFACE
  -Wall -Wextra -Wconversion -fstack-protector-strong
  $<$<BOOL:${WEIR_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # Warns of std::string where nothing is wrong (GCC bug 105651).
  target_compile_options(weir_compile_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # which lock guards what: src/base/thread_safety.hpp
  target_compile_options(weir_compile_options INTERFACE -Wthread-safety)
endif()
if(NOT WEIR_SANITIZE)  # it hides calls from the sanitizers
  target_compile_options(weir_compile_options INTERFACE $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
endif()
target_link_options(weir_compile_options INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
include(CheckPIESupported)
check_pie_supported()  # programs, too, are position independent, whatever the compiler is used to
if(WEIR_SANITIZE)
  target_compile_options(weir_compile_options INTERFACE
    -fsanitize=${WEIR_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
  target_link_options(weir_compile_options INTERFACE -fsanitize=${WEIR_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # it loses track of what the checks it adds leave alone
    target_compile_options(weir_compile_options INTERFACE -Wno-maybe-uninitialized -Wno-stringop-overflow)
  endif()
  # Callers in C may put any number into an enum: it is checked, and must be read to be checked.
  if(WEIR_SANITIZE MATCHES undefined)
    target_compile_options(weir_compile_options INTERFACE -fno-sanitize=enum)
    if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
      # Clang's run-time library for C has no vptr. Handles are opaque: those who load a function by its
      # name declare other pointers than the library does.
      target_compile_options(weir_compile_options INTERFACE -fno-sanitize=vptr -fno-sanitize=function)
    endif()
  endif()
endif()
if(WEIR_BUILD_FUZZERS)  # what is fuzzed tells libFuzzer which branches it takes
  target_compile_options(weir_compile_options INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(weir_compile_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
