# libstretto.so and libstretto.a: all floors in one, exporting only what stretto.h marks (stretto_*), with pkg-config and CMake package.
get_property(floors GLOBAL PROPERTY STRETTO_FLOORS)
get_property(isa_objects GLOBAL PROPERTY STRETTO_ISA_OBJECTS)
set(objects ${isa_objects})
foreach(floor ${floors})
  list(APPEND objects $<TARGET_OBJECTS:${floor}>)
endforeach()
set(libraries PkgConfig::JANSSON PkgConfig::YAML PkgConfig::ZSTD PkgConfig::ZLIB PkgConfig::HWLOC m Threads::Threads)

add_library(stretto_shared SHARED ${objects})
set_target_properties(stretto_shared PROPERTIES OUTPUT_NAME stretto VERSION ${PROJECT_VERSION} SOVERSION 1 LINKER_LANGUAGE C)
target_link_libraries(stretto_shared PRIVATE ${libraries})
target_include_directories(stretto_shared INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)

# The static library is one relocatable object whose inner names were made local, so it exports no more than the shared one.
set(merged ${CMAKE_BINARY_DIR}/stretto_all.o)
add_custom_command(OUTPUT ${merged}
  COMMAND ${CMAKE_LINKER} -r -o ${merged} ${objects}
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${merged}
  DEPENDS ${objects} COMMAND_EXPAND_LISTS VERBATIM)
add_library(stretto_static STATIC ${merged})
set_target_properties(stretto_static PROPERTIES OUTPUT_NAME stretto LINKER_LANGUAGE C)
target_link_libraries(stretto_static INTERFACE ${libraries})
target_include_directories(stretto_static INTERFACE ${CMAKE_SOURCE_DIR}/include)

install(TARGETS stretto_shared EXPORT stretto LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES $<TARGET_FILE:stretto_static> DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${CMAKE_SOURCE_DIR}/include/stretto/stretto.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stretto)
install(EXPORT stretto NAMESPACE stretto:: FILE strettoConfig.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/stretto)
