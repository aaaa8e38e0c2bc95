# What `make install` adds to program, libraries and header: the manual page, the completions of shells (both are what the program
# itself prints), and the version files of pkg-config and CMake.  Included after cli/ and StrettoLibrary.
include(CMakePackageConfigHelpers)

set(pages ${CMAKE_BINARY_DIR}/pages)
set(made ${pages}/stretto.1 ${pages}/stretto.bash ${pages}/_stretto ${pages}/stretto.fish)
add_custom_command(OUTPUT ${made}
  COMMAND ${CMAKE_SOURCE_DIR}/cmake/pages.sh $<TARGET_FILE:stretto> ${pages}
  DEPENDS stretto ${CMAKE_SOURCE_DIR}/cmake/pages.sh VERBATIM)
add_custom_target(stretto_pages ALL DEPENDS ${made})
install(FILES ${pages}/stretto.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${pages}/stretto.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME stretto)
install(FILES ${pages}/_stretto DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${pages}/stretto.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

if(TARGET stretto_shared)
  # The prefix is known when the files are installed: `cmake --install BUILD --prefix PREFIX` overrides that of the configuration.
  install(CODE "
    get_filename_component(prefix \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
    set(CMAKE_INSTALL_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")
    set(CMAKE_INSTALL_INCLUDEDIR \"${CMAKE_INSTALL_INCLUDEDIR}\")
    set(PROJECT_VERSION \"${PROJECT_VERSION}\")
    configure_file(\"${CMAKE_SOURCE_DIR}/cmake/stretto.pc.in\" \"${CMAKE_BINARY_DIR}/stretto.pc\" @ONLY)")
  install(FILES ${CMAKE_BINARY_DIR}/stretto.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/strettoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/strettoConfigVersion.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/stretto)
endif()
