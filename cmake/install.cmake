# The package: library, headers, find_package(weir), weir.pc and the command line tool, all of them
# free of absolute paths, so that the installed tree can be moved. The same find_package(weir) works
# on the build tree with weir_DIR set to it.
include(CMakePackageConfigHelpers)

set(WEIR_INSTALL_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
set(WEIR_INSTALL_PKGCONFIGDIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(TARGETS weir EXPORT weir-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/weir ${PROJECT_SOURCE_DIR}/include/hiway
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/weir)

# find_package(weir)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/weir-config.cmake.in
  ${PROJECT_BINARY_DIR}/weir-config.cmake INSTALL_DESTINATION ${WEIR_INSTALL_CMAKEDIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weir-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/weir-config.cmake ${PROJECT_BINARY_DIR}/weir-config-version.cmake
  ${CMAKE_CURRENT_LIST_DIR}/weir-embed.cmake
  DESTINATION ${WEIR_INSTALL_CMAKEDIR})
install(EXPORT weir-targets NAMESPACE weir:: DESTINATION ${WEIR_INSTALL_CMAKEDIR})
configure_file(${CMAKE_CURRENT_LIST_DIR}/weir-embed.cmake
  ${PROJECT_BINARY_DIR}/weir-embed.cmake COPYONLY)
export(EXPORT weir-targets NAMESPACE weir:: FILE ${PROJECT_BINARY_DIR}/weir-targets.cmake)

# pkg-config
file(RELATIVE_PATH WEIR_PC_TO_PREFIX
  ${CMAKE_INSTALL_PREFIX}/${WEIR_INSTALL_PKGCONFIGDIR} ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH WEIR_PC_INCLUDEDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
file(RELATIVE_PATH WEIR_PC_LIBDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
configure_file(${CMAKE_CURRENT_LIST_DIR}/weir.pc.in ${PROJECT_BINARY_DIR}/weir.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weir.pc DESTINATION ${WEIR_INSTALL_PKGCONFIGDIR})

# pkg-config hstreams, for the package and for programs that the tests build in this tree. Programs
# of the time call CBLAS and LAPACKE themselves.
if(TARGET hstreams_source)
  install(TARGETS hstreams_source EXPORT weir-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/hstreams DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h")
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
  install(FILES ${PROJECT_BINARY_DIR}/hstreams.pc DESTINATION ${WEIR_INSTALL_PKGCONFIGDIR})
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
      RENAME ${name})
  endforeach()
  set(HSTREAMS_WRAPPER_TO_PC ../pkgconfig)
  foreach(name hstreams-icpc hstreams-icc)
    configure_file(${CMAKE_CURRENT_LIST_DIR}/hstreams-icpc.in ${PROJECT_BINARY_DIR}/bin/${name}
      @ONLY FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
      WORLD_READ WORLD_EXECUTE)
  endforeach()
endif()

# The Fortran module and pkg-config weir-fortran; the sources, for compilers other than this.
if(TARGET weir_fortran)
  install(TARGETS weir_fortran EXPORT weir-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/${WEIR_FORTRAN_MODULES}/weir.mod
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/${WEIR_FORTRAN_MODULES})
  install(FILES fortran/weir.f90 fortran/shim.c fortran/shim.h
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/weir/fortran)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/weir-fortran.pc.in
    ${PROJECT_BINARY_DIR}/weir-fortran.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/weir-fortran.pc DESTINATION ${WEIR_INSTALL_PKGCONFIGDIR})
endif()

if(TARGET weir_cli)
  file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(weir_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
  install(TARGETS weir_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
