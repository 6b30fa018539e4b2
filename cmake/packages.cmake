# Debian packages of the components that install.cmake names: scripts/packages.sh. A package for a
# system has no search paths in its programs, and its copyright and changelog.
option(WEIR_PACKAGES "Prepare the Debian packages (cpack -G DEB), for the prefix /usr" OFF)
if(NOT WEIR_PACKAGES)
  return()
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME weir)
set(CPACK_PACKAGE_CONTACT "weir maintainers <maintainers@users.noreply.github.com>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/dist)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# weir_package(COMPONENT NAME SECTION DEPENDS SUMMARY): a component becomes a package.
set(own "libweir0 (= ${PROJECT_VERSION}-1)")
macro(weir_package component name section depends summary)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  string(TOUPPER ${component} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS "${depends}")
  set(CPACK_DEBIAN_${key}_DESCRIPTION "Programs enqueue kernels, transfers and syncs into streams, and weir runs\nthem out of order on partitions of host cores, OpenCL devices, GPUs and\nother ranks. This package contains ${summary}.")
  install(FILES ${PROJECT_BINARY_DIR}/packages/copyright
    DESTINATION share/doc/${name} COMPONENT ${component})
  install(FILES ${PROJECT_BINARY_DIR}/packages/changelog.Debian.gz
    DESTINATION share/doc/${name} COMPONENT ${component})
endmacro()
weir_package(runtime libweir0 libs "" "the library")
weir_package(mpi libweir-mpi libs "${own}" "ranks over MPI")
weir_package(development libweir-dev libdevel "${own}"
  "headers for C and C++")
weir_package(tools weir-tools utils "${own}" "the command weir")
if(TARGET weir_python)
  set(WEIR_SCRIPTS postinst prerm)
  set(WEIR_PROGRAMS py3compile py3clean)
  execute_process(COMMAND ${WEIR_PYTHON} -c "from sys import version_info as v\nprint(\
'python3 (>= 3.12)' if v >= (3, 12) else f'python3 (>= 3.{v[1]}), python3 (<< 3.{v[1] + 1})')"
    OUTPUT_VARIABLE python OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  weir_package(python python3-weir python "${own}, ${python}, python3-numpy" "the Python package")
  foreach(name program IN ZIP_LISTS WEIR_SCRIPTS WEIR_PROGRAMS)  # as dh_python3 does
    file(WRITE ${PROJECT_BINARY_DIR}/packages/${name}
      "#!/bin/sh\nset -e\nif command -v ${program} >/dev/null 2>&1; then ${program} -p python3-weir; fi\n")
    file(CHMOD ${PROJECT_BINARY_DIR}/packages/${name} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
      GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    list(APPEND CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/packages/${name})
  endforeach()
endif()
if(TARGET weir_fortran)
  weir_package(fortran libweir-fortran libdevel "${own}, libweir-dev (= ${PROJECT_VERSION}-1)"
    "the Fortran module")
endif()
if(TARGET hstreams_source)
  weir_package(hstreams libhstreams libdevel "${own}"
    "hStreams 1.3")
endif()
foreach(component RUNTIME TOOLS)
  set(CPACK_DEBIAN_${component}_PACKAGE_RECOMMENDS "libopenblas0-pthread | libblas3")
endforeach()
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "libweir-mpi, ocl-icd-libopencl1")
foreach(component RUNTIME MPI FORTRAN HSTREAMS)
  set(CPACK_DEBIAN_${component}_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/packages/triggers)
endforeach()

file(WRITE ${PROJECT_BINARY_DIR}/packages/triggers "activate-noawait ldconfig\n")
file(WRITE ${PROJECT_BINARY_DIR}/packages/copyright
  "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
  "Upstream-Name: weir\n\nFiles: *\nCopyright: 2026 the weir maintainers\nLicense: Apache-2.0\n"
  " On Debian systems the text of the Apache License, version 2.0, is in\n"
  " /usr/share/common-licenses/Apache-2.0.\n")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${PROJECT_BINARY_DIR}/packages/changelog.Debian
  "weir (${PROJECT_VERSION}-1) unstable; urgency=medium\n\n  * See CHANGELOG.md of the sources.\n\n"
  " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
execute_process(COMMAND gzip -9nf ${PROJECT_BINARY_DIR}/packages/changelog.Debian
  COMMAND_ERROR_IS_FATAL ANY)
include(CPack)
