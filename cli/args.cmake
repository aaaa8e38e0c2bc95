# The part of the program that tests can link: command line, help, generated pages.  cli/CMakeLists.txt includes this.
add_library(st_cli_args STATIC ${CMAKE_SOURCE_DIR}/cli/args.c ${CMAKE_SOURCE_DIR}/cli/help.c ${CMAKE_SOURCE_DIR}/cli/remedy.c ${CMAKE_SOURCE_DIR}/cli/gen.c)
target_include_directories(st_cli_args PUBLIC ${CMAKE_SOURCE_DIR}/cli ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(st_cli_args PUBLIC st_opt)
