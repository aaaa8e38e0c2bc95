# Cross-compiles for 64-bit ARM with Debian's gcc-aarch64-linux-gnu and runs what it built in qemu-user.
#
#     tools/arm_root.sh build/arm-root                                    # the libraries, unpacked; nothing is installed
#     cmake -B build/arm -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake [-DSTRETTO_ARM_ROOT=folder]
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

set(STRETTO_ARM_ROOT ${CMAKE_CURRENT_LIST_DIR}/../build/arm-root CACHE PATH "folder that tools/arm_root.sh filled")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES STRETTO_ARM_ROOT)
get_filename_component(root ${STRETTO_ARM_ROOT} ABSOLUTE)
set(libs ${root}/usr/lib/aarch64-linux-gnu)
set(CMAKE_C_FLAGS_INIT "-isystem ${root}/usr/include -isystem ${root}/usr/include/aarch64-linux-gnu")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${libs}:${root}/lib/aarch64-linux-gnu")
set(CMAKE_SHARED_LINKER_FLAGS_INIT ${CMAKE_EXE_LINKER_FLAGS_INIT})
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${root})
set(ENV{PKG_CONFIG_LIBDIR} ${libs}/pkgconfig:${root}/usr/share/pkgconfig)
set(CMAKE_FIND_ROOT_PATH ${root} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY BOTH) # pkg-config names folders below the root already
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=${libs}:${root}/lib/aarch64-linux-gnu)
