# The package: library, headers, find_package(weir), weir.pc and the command line tool, all of them
# free of absolute paths, so that the installed tree can be moved. The same find_package(weir) works
# on the build tree with weir_DIR set to it. Its components are the Debian packages (packages.cmake);
# a wheel has all of them but Fortran.
include(CMakePackageConfigHelpers)

# weir_install_library(TARGET COMPONENT): the library for programs, and for compilers with an export
# of its own, as the packages of other components may be missing.
function(weir_install_library target component)
  set(link development)
  if(NOT component STREQUAL "runtime")
    set(link ${component})
  endif()
  if(SKBUILD)  # a wheel has no links: the name for the linker is a script
    get_target_property(version ${target} SOVERSION)
    set_target_properties(${target} PROPERTIES VERSION ${version})
    set(file ${PROJECT_BINARY_DIR}/wheel/lib${target}.so)
    file(WRITE ${file} "INPUT(lib${target}.so.${version})\n")
    install(FILES ${file} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${link})
    set(namelink NAMELINK_SKIP)
  else()
    set(namelink NAMELINK_COMPONENT ${link})
  endif()
  install(TARGETS ${target} EXPORT ${target}-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component} ${namelink})
  install(EXPORT ${target}-targets NAMESPACE weir::
    DESTINATION ${WEIR_INSTALL_CMAKEDIR} COMPONENT ${link})
  export(EXPORT ${target}-targets NAMESPACE weir:: FILE ${PROJECT_BINARY_DIR}/${target}-targets.cmake)
endfunction()

set(WEIR_INSTALL_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
set(WEIR_INSTALL_PKGCONFIGDIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

weir_install_library(weir runtime)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/weir ${PROJECT_SOURCE_DIR}/include/hiway
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
if(NOT WEIR_PACKAGES)  # Debian has it
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/weir COMPONENT development)
endif()

# find_package(weir)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/weir-config.cmake.in
  ${PROJECT_BINARY_DIR}/weir-config.cmake INSTALL_DESTINATION ${WEIR_INSTALL_CMAKEDIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weir-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/weir-config.cmake ${PROJECT_BINARY_DIR}/weir-config-version.cmake
  ${CMAKE_CURRENT_LIST_DIR}/weir-embed.cmake
  DESTINATION ${WEIR_INSTALL_CMAKEDIR} COMPONENT development)
configure_file(${CMAKE_CURRENT_LIST_DIR}/weir-embed.cmake
  ${PROJECT_BINARY_DIR}/weir-embed.cmake COPYONLY)

# pkg-config
file(RELATIVE_PATH WEIR_PC_TO_PREFIX
  ${CMAKE_INSTALL_PREFIX}/${WEIR_INSTALL_PKGCONFIGDIR} ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH WEIR_PC_INCLUDEDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
file(RELATIVE_PATH WEIR_PC_LIBDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
if(SKBUILD)  # nothing else finds a library inside a Python package when a program starts
  set(WEIR_PC_RPATH " -Wl,-rpath,\${libdir}")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/weir.pc.in ${PROJECT_BINARY_DIR}/weir.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weir.pc
  DESTINATION ${WEIR_INSTALL_PKGCONFIGDIR} COMPONENT development)

# Where neither the loader nor a package manager looks, programs find the library by an rpath. The
# prefix is known when the files are installed.
function(weir_install_rpath package component)
  install(CODE "
    if(NOT CMAKE_INSTALL_PREFIX MATCHES \"^/usr(/local)?/?$\")
      set(file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${WEIR_INSTALL_PKGCONFIGDIR}/${package}.pc\")
      file(READ \"\${file}\" text)
      if(NOT text MATCHES \"-rpath\")
        string(REPLACE \"-L\\\${libdir}\" \"-L\\\${libdir} -Wl,-rpath,\\\${libdir}\" text \"\${text}\")
        file(WRITE \"\${file}\" \"\${text}\")
      endif()
    endif()" COMPONENT ${component})
endfunction()
weir_install_rpath(weir development)

# pkg-config hstreams, for the package and for programs that the tests build in this tree. Programs
# of the time call CBLAS and LAPACKE themselves.
if(TARGET hstreams_source)
  weir_install_library(hstreams_source hstreams)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/hstreams
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT hstreams FILES_MATCHING PATTERN "*.h")
  find_package(PkgConfig REQUIRED)
  foreach(library openblas lapacke)
    pkg_check_modules(HSTREAMS_${library} QUIET ${library})
    if(HSTREAMS_${library}_FOUND)
      string(APPEND HSTREAMS_PC_REQUIRES "${library} ")
    endif()
  endforeach()
  set(HSTREAMS_PC_PREFIX \${pcfiledir}/${WEIR_PC_TO_PREFIX})
  set(HSTREAMS_PC_INCLUDEDIR \${prefix}/${WEIR_PC_INCLUDEDIR}/hstreams)
  set(HSTREAMS_PC_LIBDIR \${prefix}/${WEIR_PC_LIBDIR})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/hstreams.pc.in ${PROJECT_BINARY_DIR}/hstreams.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/hstreams.pc
    DESTINATION ${WEIR_INSTALL_PKGCONFIGDIR} COMPONENT hstreams)
  weir_install_rpath(hstreams hstreams)
  set(HSTREAMS_PC_PREFIX ${PROJECT_SOURCE_DIR})
  set(HSTREAMS_PC_INCLUDEDIR \${prefix}/include/hstreams)
  set(HSTREAMS_PC_LIBDIR ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
  set(HSTREAMS_PC_RPATH " -Wl,-rpath,\${libdir}")
  configure_file(${CMAKE_CURRENT_LIST_DIR}/hstreams.pc.in
    ${PROJECT_BINARY_DIR}/pkgconfig/hstreams.pc @ONLY)
  # The same for both: a script beside which pkg-config's file is found.
  file(RELATIVE_PATH HSTREAMS_WRAPPER_TO_PC
    ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_PREFIX}/${WEIR_INSTALL_PKGCONFIGDIR})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/hstreams-icpc.in ${PROJECT_BINARY_DIR}/hstreams-icpc @ONLY)
  foreach(name hstreams-icpc hstreams-icc)
    install(PROGRAMS ${PROJECT_BINARY_DIR}/hstreams-icpc DESTINATION ${CMAKE_INSTALL_BINDIR}
      COMPONENT hstreams RENAME ${name})
  endforeach()
  set(HSTREAMS_WRAPPER_TO_PC ../pkgconfig)
  foreach(name hstreams-icpc hstreams-icc)
    configure_file(${CMAKE_CURRENT_LIST_DIR}/hstreams-icpc.in ${PROJECT_BINARY_DIR}/bin/${name}
      @ONLY FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
      WORLD_READ WORLD_EXECUTE)
  endforeach()
endif()

# The Fortran modules and pkg-config weir-fortran; the sources, for compilers other than this.
if(TARGET weir_fortran)
  weir_install_library(weir_fortran fortran)
  foreach(name weir_support weir weir_ranks)
    install(FILES ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/${WEIR_FORTRAN_MODULES}/${name}.mod
      DESTINATION ${CMAKE_INSTALL_LIBDIR}/${WEIR_FORTRAN_MODULES} COMPONENT fortran)
    install(FILES fortran/${name}.f90
      DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/weir/fortran COMPONENT fortran)
  endforeach()
  install(FILES fortran/shim.c fortran/shim.h
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/weir/fortran COMPONENT fortran)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/weir-fortran.pc.in
    ${PROJECT_BINARY_DIR}/weir-fortran.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/weir-fortran.pc
    DESTINATION ${WEIR_INSTALL_PKGCONFIGDIR} COMPONENT fortran)
endif()

if(TARGET weir_cli)
  file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(weir_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
  install(TARGETS weir_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  if(WEIR_SHELL_PAGES)
    set(share ${CMAKE_INSTALL_DATAROOTDIR})
    install(FILES ${WEIR_SHELL_PAGES}/weir
      DESTINATION ${share}/bash-completion/completions COMPONENT tools)
    install(FILES ${WEIR_SHELL_PAGES}/_weir DESTINATION ${share}/zsh/site-functions COMPONENT tools)
    install(FILES ${WEIR_SHELL_PAGES}/weir.fish
      DESTINATION ${share}/fish/vendor_completions.d COMPONENT tools)
    install(FILES ${WEIR_SHELL_PAGES}/weir.1$<$<BOOL:${WEIR_PACKAGES}>:.gz>
      DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
  endif()
endif()

# The module file of clusters: share/modulefiles/weir/VERSION. It finds the prefix from its own place.
set(WEIR_MODULE_DIR ${CMAKE_INSTALL_DATAROOTDIR}/modulefiles/weir)
cmake_path(ABSOLUTE_PATH WEIR_MODULE_DIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE folder)
file(RELATIVE_PATH WEIR_MODULE_TO_PREFIX ${folder} ${CMAKE_INSTALL_PREFIX})
foreach(name BINDIR MANDIR)
  file(RELATIVE_PATH WEIR_MODULE_${name} ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_${name}})
endforeach()
set(WEIR_MODULE_PYTHONPATH "")
if(TARGET weir_python AND WEIR_PYTHON_DIR)
  cmake_path(ABSOLUTE_PATH WEIR_PYTHON_DIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE folder)
  cmake_path(GET folder PARENT_PATH folder)
  file(RELATIVE_PATH folder ${CMAKE_INSTALL_PREFIX} ${folder})
  set(WEIR_MODULE_PYTHONPATH "prepend-path PYTHONPATH $root/${folder}\n")
endif()
configure_file(${PROJECT_SOURCE_DIR}/packaging/modulefile/weir.tcl.in
  ${PROJECT_BINARY_DIR}/modulefiles/weir/${PROJECT_VERSION} @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/modulefiles/weir/${PROJECT_VERSION}
  DESTINATION ${WEIR_MODULE_DIR} COMPONENT modulefile)
