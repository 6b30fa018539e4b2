# Cross-compiles for 64-bit Arm with the compiler of Debian and the libraries that scripts/aarch64.sh unpacks;
# programs run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

if(NOT WEIR_SYSROOT)
  set(WEIR_SYSROOT $ENV{WEIR_SYSROOT})
endif()
if(NOT WEIR_SYSROOT)
  set(WEIR_SYSROOT /var/tmp/weir-roots/aarch64)
endif()
set(WEIR_SYSROOT ${WEIR_SYSROOT} CACHE PATH "Libraries for 64-bit Arm, of scripts/aarch64.sh")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES WEIR_SYSROOT)
if(NOT EXISTS ${WEIR_SYSROOT}/.complete)
  message(FATAL_ERROR "'${WEIR_SYSROOT}' has no libraries for 64-bit Arm: run scripts/aarch64.sh prepare, "
    "or name their folder by WEIR_SYSROOT")
endif()

set(CMAKE_SYSROOT ${WEIR_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${WEIR_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
  ${WEIR_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${WEIR_SYSROOT}/usr/share/pkgconfig)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;${WEIR_SYSROOT})
